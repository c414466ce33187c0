"""The registry of actions: complete, without clashes, and open to the operator's own keys."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.app.sources import ListSource, make_samples
from tests.app.stage import make_app
from tui.action import Action
from tui.app.app import LunscopeApp
from tui.keys import ACTIONS, clashes
from tui.screen_registry import SCREENS, TABS, ScreenEntry
from tui.screens.load.actions import TURNS
from tui.screens.shared.base import view_class
from tui.settings import load_settings

VIEWS = {entry.id: view_class(entry) for entry in SCREENS}


@pytest.fixture(scope="module")
def app() -> LunscopeApp:
    return make_app(ListSource(make_samples(count=1)))


@pytest.mark.parametrize("entry", SCREENS, ids=lambda entry: entry.id)
def test_every_entry_and_its_view_name_each_other(entry: ScreenEntry) -> None:
    assert view_class(entry).ENTRY is entry
    assert {action.screen for action in entry.actions} <= {entry.id}


def test_every_tab_has_an_action_that_opens_it() -> None:
    assert {entry.opener for entry in TABS} <= set(ACTIONS)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda action: action.id)
def test_every_action_has_a_method_where_it_works(action: Action, app: LunscopeApp) -> None:
    view = VIEWS.get(action.screen)
    owners = [app] if view is None else [view, *vars(sys.modules[view.__module__]).values()]
    assert any(callable(getattr(each, f"action_{action.method}", None)) for each in owners), "the view or its parts"


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
        'theme = "nord"\n[keys]\nsession.pause = "k"\n"view.help" = ["Q", "ctrl+h"]\n',
    )
    settings = load_settings(path)
    assert settings.theme == "nord"
    assert settings.keys == {"session.pause": "k", "view.help": "Q,ctrl+h"}
    assert settings.problems == ()


def test_no_settings_file_is_no_problem(tmp_path: Path) -> None:
    assert load_settings(tmp_path / "none.toml").problems == ()


def test_settings_are_looked_for_in_the_xdg_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lunscope").mkdir()
    settings_of(tmp_path / "lunscope", 'theme = "gruvbox"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert load_settings().theme == "gruvbox"
