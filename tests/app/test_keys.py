"""The registry of actions: complete, without clashes, and open to the operator's own keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from tui.app import LunscopeApp
from tui.keys import ACTIONS, Action, Place, clashes
from tui.load.knob_turns import TURNS
from tui.looks.settings import load_settings
from tui.screens.disk import DiskView
from tui.screens.events import EventsScreen
from tui.screens.latency import LatencyScreen
from tui.screens.load import LoadScreen
from tui.screens.overview import OverviewScreen
from tui.screens.paths import PathsScreen
from tui.screens.tree import TreeScreen
from tui.screens.wall import WallScreen

OWNERS = {
    Place.ANYWHERE: LunscopeApp,
    Place.OVERVIEW: OverviewScreen,
    Place.DISK: DiskView,
    Place.LOAD: LoadScreen,
    Place.LATENCY: LatencyScreen,
    Place.EVENTS: EventsScreen,
    Place.PATHS: PathsScreen,
    Place.TREE: TreeScreen,
    Place.WALL: WallScreen,
}


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.id)
def test_every_action_has_a_method_where_it_works(action: Action) -> None:
    assert callable(getattr(OWNERS[action.place], f"action_{action.method}"))


def test_ids_and_keys_are_unique() -> None:
    assert len({action.id for action in ACTIONS}) == len(ACTIONS)
    assert list(clashes({})) == []


def test_every_turn_has_a_key_and_every_knob_key_a_turn() -> None:
    knob_actions = {action.id.removeprefix("knob.") for action in ACTIONS if action.id.startswith("knob.")}
    assert knob_actions == set(TURNS)


def test_clash_names_both_actions() -> None:
    found = [(key, first.id, second.id) for key, first, second in clashes({"view.help": "q"})]
    assert found == [("q", "view.help", "session.quit")]


def settings_of(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return path


def test_settings_take_dotted_quoted_and_listed_keys(tmp_path: Path) -> None:
    path = settings_of(
        tmp_path,
        'theme = "nord"\n[keys]\nsession.pause = "k"\n"view.help" = ["h", "ctrl+h"]\n',
    )
    settings = load_settings(path)
    assert settings.theme == "nord"
    assert settings.keys == {"session.pause": "k", "view.help": "h,ctrl+h"}
    assert settings.problems == ()


def test_no_settings_file_is_no_problem(tmp_path: Path) -> None:
    assert load_settings(tmp_path / "none.toml").problems == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[keys]\nsession.puase = "p"\n', "'session.puase'; did you mean 'session.pause'?"),
        ("[keys]\nsession.pause = 3\n", "session.pause: 3 is not a key"),
        ('[keys]\nsession.pause = ["p", 3]\n', "session.pause"),
        ('[keys]\nsession.pause = "ctrl+"\n', "session.pause"),
        ('[keys]\nview.help = "q"\n', "'q' is given to view.help and to session.quit"),
        ('thme = "x"\n', "unknown setting 'thme'; did you mean 'theme'?"),
        ("theme = 3\n", "theme must be a name"),
        ("keys = 3\n", "keys must be a table"),
        ('glyphs = "fancy"\n', "glyphs must be one of auto, unicode, ascii"),
        ("theme = \n", "config.toml"),
    ],
)
def test_broken_settings_are_named_with_their_file(tmp_path: Path, text: str, told: str) -> None:
    path = settings_of(tmp_path, text)
    problems = load_settings(path).problems
    assert len(problems) == 1
    assert problems[0].startswith(str(path))
    assert told in problems[0]


def test_settings_are_looked_for_in_the_xdg_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lunscope").mkdir()
    settings_of(tmp_path / "lunscope", 'theme = "gruvbox"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert load_settings().theme == "gruvbox"
