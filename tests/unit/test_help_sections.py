"""What help says, without drawing it: the current screen first, everything once, and a search over all of it."""

from __future__ import annotations

import pytest

from collectors.all_subjects import SUBJECTS
from collectors.registry import fields_of
from tui.action import Action
from tui.keys import ACTIONS
from tui.screen_registry import SCREENS, ScreenEntry
from tui.screens.help.hanging import find_lines, next_match
from tui.screens.help.sections import HelpFacts, HelpSection, help_sections


def sections(screen: ScreenEntry | None = None) -> tuple[HelpSection, ...]:
    return help_sections(HelpFacts(screen, keys, (("<", "Sort by the previous column"),), ("careful <b>",)))


def keys(action: Action) -> str:
    return f"key of {action.id}"


def text(section: HelpSection) -> str:
    return "\n".join(line.content.plain for line in section.lines)


@pytest.mark.parametrize("screen", [None, *SCREENS], ids=lambda screen: screen.id if screen else "none")
def test_every_action_and_every_figure_is_there_once(screen: ScreenEntry | None) -> None:
    found = sections(screen)
    page = "\n".join(map(text, found))
    for action in ACTIONS:
        assert page.count(f"{keys(action)} ") + page.count(f"{keys(action)}{action.title}") == 1, action.id
    titles = [section.title for section in found]
    assert len(set(titles)) == len(titles)
    for subject in SUBJECTS:
        (figures,) = (each for each in found if each.title.casefold() == f"{subject.one} figures".casefold())
        ids = [line.content.plain.strip().partition(";")[0] for line in figures.lines]
        assert [field.id for field in subject.fields] == ids[1::2]
    assert "careful <b>" in page


@pytest.mark.parametrize("screen", SCREENS, ids=lambda screen: screen.id)
def test_the_current_screen_comes_first_and_its_figures_before_those_of_others(screen: ScreenEntry) -> None:
    titles = [section.title for section in sections(screen)]
    assert titles[0] == f"This screen: {screen.title}"
    assert f"Keys of {screen.id}" not in titles
    figures = [title for title in titles if title.endswith(" figures")]
    wanted = [subject.one for table in screen.tables for subject in SUBJECTS if subject.table == table]
    assert [title.removesuffix(" figures").casefold() for title in figures[: len(wanted)]] == [
        one.casefold() for one in wanted
    ]


def test_every_table_of_a_screen_has_figures() -> None:
    assert all(fields_of(table) for screen in SCREENS for table in screen.tables)


def test_other_monitors_are_explained() -> None:
    by_title = {section.title: text(section) for section in sections()}
    for figure in ("DAVG", "KAVG", "QAVG", "GAVG", "DQLEN"):
        assert figure in by_title["Coming from esxtop"]
    for figure in ("r_await", "aqu-sz", "%util", "svctm"):
        assert figure in by_title["Coming from iostat and sar"]


def test_a_search_finds_lines_with_all_words_in_any_case() -> None:
    lines = ["Queue time per I/O", "service time", "", "time in the QUEUE"]
    assert find_lines(lines, "queue") == [0, 3]
    assert find_lines(lines, "TIME queue") == [0, 3]
    assert find_lines(lines, "queue i/o") == [0]
    assert find_lines(lines, "  ") == []
    assert find_lines(lines, "nowhere") == []


def test_the_next_match_goes_round() -> None:
    assert [next_match([2, 5, 9], present, 1) for present in (-1, 2, 9)] == [2, 5, 2]
    assert [next_match([2, 5, 9], present, -1) for present in (9, 2, -1)] == [5, 9, 9]
    assert next_match([], 3, 1) is None
