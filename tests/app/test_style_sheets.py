"""What a key costs in style sheets: nothing is parsed twice for a theme."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from textual.css import parse as css_parse
from textual.css import stylesheet
from textual.css.stylesheet import Stylesheet
from textual.dom import DOMNode

from tests.app.sources import ListSource, make_samples
from tests.app.stage import make_app, on_stage, play
from tui.textual_internals.sheets import ThemeSheets
from tui.widgets.grid.table import Grid

CSS = "Label { color: $ink; }"


def colour_of(sheets: ThemeSheets) -> object:
    return sheets.rules[0].styles.color


def test_the_rules_follow_the_variables() -> None:
    sheets = ThemeSheets(variables={"ink": "red"})
    sheets.add_source(CSS)
    red = colour_of(sheets)
    sheets.set_variables({"ink": "blue"})
    sheets.reparse()
    assert colour_of(sheets) != red
    sheets.set_variables({"ink": "red"})
    sheets.reparse()
    assert colour_of(sheets) == red


@pytest.mark.slow
async def test_screens_and_themes_that_were_shown_before_are_not_parsed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ListSource(make_samples(count=3))
    parsed: list[object] = []
    parse = css_parse.parse

    def counting(*arguments: object, **options: object) -> object:
        parsed.append(arguments[2])
        return parse(*arguments, **options)  # type: ignore[arg-type]

    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 2)
        await pilot.press(*"134567")
        names = [name for name in pilot.app.available_themes if name.startswith("lunscope")]

        async def show_all() -> None:
            for name in names:
                pilot.app.theme = name
                await pilot.pause()
                await pilot.press(*"134")

        await show_all()
        monkeypatch.setattr(stylesheet, "parse", counting)
        await show_all()
    assert parsed == []


@pytest.mark.slow
async def test_a_hidden_screen_is_styled_again_only_after_a_change_of_theme(monkeypatch: pytest.MonkeyPatch) -> None:
    source = ListSource(make_samples(count=3))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 2)
        await pilot.press(*"3131")
        overview, styled = pilot.app.screen, list[DOMNode]()
        update_nodes = ThemeSheets.update_nodes

        def counting(self: ThemeSheets, nodes: Iterable[DOMNode], animate: bool = False) -> None:
            found = list(nodes)
            styled.extend(found)
            update_nodes(self, found, animate)

        monkeypatch.setattr(ThemeSheets, "update_nodes", counting)
        await pilot.press(*"31")
        assert overview not in styled
        await pilot.press("3")
        before = overview.styles.background
        pilot.app.theme = "textual-light"
        await pilot.press("1")
        assert overview in styled
        assert overview.styles.background != before


async def test_component_classes_are_styled_when_they_are_asked_for() -> None:
    source = ListSource(make_samples(count=3))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 2)
        grid = pilot.app.screen.query_one("#disks", Grid)
        before = grid.get_component_styles("grid--header").color
        assert grid._component_styles == {}, "none is kept"
        pilot.app.theme = "textual-light"
        await pilot.pause()
        assert grid.get_component_styles("grid--header").color != before
        with pytest.raises(KeyError):
            grid.get_component_styles("grid--unknown")


@pytest.mark.slow
async def test_every_widget_has_the_styles_that_textual_itself_gives_it() -> None:
    source = ListSource(make_samples(count=3))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 2)
        for key in ("1", "2", "tab", "tab", "1", "tab", "4", "slash", "escape", "T", "1", "question_mark"):
            await pilot.press(key)
            ours = pilot.app.stylesheet
            theirs = Stylesheet(variables=ours._variables)
            theirs.source = dict(ours.source)
            theirs.parse()
            nodes = list(pilot.app.screen.walk_children(with_self=True))
            given = [_rules_of(node) for node in nodes]
            for node in nodes:
                theirs.apply(node)
            assert [_rules_of(node) for node in nodes] == given
            assert any(components for _, components in given)


def _rules_of(node: DOMNode) -> tuple[dict[str, object], dict[str, dict[str, object]]]:
    styles = {name: node._component_styles[name] for name in node._get_component_classes()}
    components = {name: dict(each.base.get_rules()) for name, each in styles.items()}
    return dict(node.styles.base.get_rules()), components
