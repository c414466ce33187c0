"""All actions, those of the screens from their entries: bindings, key line, help and palette are made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from textual.binding import BindingType

from tui.action import ANYWHERE, Action
from tui.screen_registry import SCREENS, TABS, ScreenEntry


def _replay(name: str, title: str, keys: str, short: str = "") -> Action:
    return Action(f"session.{name}", title, keys, short, replay=True, priority=True)


def _time(name: str, title: str, keys: str, short: str = "") -> Action:
    return Action(f"session.{name}", title, keys, short, priority=True)


_OPENERS = tuple(chain.from_iterable((entry.opener, *entry.shortcuts) for entry in TABS))

ANYWHERE_ACTIONS: tuple[Action, ...] = (
    Action("view.help", "Help: keys, figures, tiers", "question_mark,f1", short="Help"),
    Action("session.quit", "Quit", "q,ctrl+q,ctrl+c", short="Quit"),
    Action("session.suspend", "Suspend: back to the shell; fg returns", "ctrl+z", priority=True),
    Action("session.redraw", "Redraw the screen, if another program wrote on it", "ctrl+l", priority=True),
    Action("session.pause", "Pause or resume the display", "space", short="Pause"),
    Action("session.note", "Write a note at this moment", "A"),
    *_OPENERS,
    Action("view.alerts", "Alerts: rules, what is raised", "exclamation_mark"),
    Action("view.settings", "Settings: values, where they come from, what can be changed", "f2"),
    Action("view.longer", "Longer chart history", "z"),
    Action("view.shorter", "Shorter chart history", "Z"),
    Action("view.log", "Latency charts: automatic, logarithmic or linear axis", "y"),
    Action("view.theme", "Next theme", "ctrl+t"),
    Action("session.sooner", "Shorter sampling interval, down to 0.1 s", "left_parenthesis", replay=False),
    Action("session.later", "Longer sampling interval, up to 60 s", "right_parenthesis", replay=False),
    Action("session.tags", "Tag wait tracing: on, off, auto", "ctrl+w", replay=False),
    _time("step_back", "One sample back; live, it pauses the display", "comma"),
    _time("step_forward", "One sample forward", "full_stop", "Step"),
    _time("back", "Back 10 s (live: while paused)", "left"),
    _time("forward", "Forward 10 s (live: while paused)", "right"),
    _time("back_minute", "Back 1 min", "shift+left"),
    _time("forward_minute", "Forward 1 min", "shift+right"),
    _time("first", "To the start (live: while paused, to the earliest kept)", "home"),
    _time("last", "To the end (live: back to now)", "end", "Now"),
    _time("goto", "Go to a time", "g", "Go to"),
    _time("event_back", "To the event before", "quotation_mark"),
    _time("event_forward", "To the next event", "apostrophe"),
    _time("peak_back", "To the latency peak before", "left_curly_bracket"),
    _time("peak_forward", "To the next latency peak", "right_curly_bracket"),
    _time("mark_back", "To the mark or note before", "colon"),
    _time("mark_forward", "To the next mark or note", "semicolon"),
    _replay("slower", "Half the speed", "s"),
    _replay("faster", "Twice the speed", "f", "Faster"),
    Action("view.processes", "Who does it: processes on what is under the cursor", "J"),
    Action("view.caches", "Caches: ARC, bcache, dm-cache, dm-writecache, page cache of the load's targets", "h"),
    Action("view.nfs", "NFS mounts: operations, transports (nconnect), what limits them", "f4"),
    Action("view.hosts", "Hosts of a fleet: all of them again, after one was shown alone", "f3"),
    Action("view.sheet", "Sheet: all that is known of the LUN, path or port under the cursor", "G"),
    Action("session.clear", "Clear the counters of what is under the cursor: totals count from now on", "number_sign"),
    Action("view.density", "Next view: normal, dense (more rows), lite (no charts, few bytes)", "Y"),
    Action("view.tune", "Tune the disk, path, LUN, port or control group under the cursor", "F"),
    Action("view.save", "Screenshot: save this screen as SVG and text", "S"),
)
"""Actions of the app, which work on every screen."""

ACTIONS: tuple[Action, ...] = (*ANYWHERE_ACTIONS, *chain.from_iterable(entry.actions for entry in SCREENS))
"""Actions in the order of the help screen."""

BY_ID: Mapping[str, Action] = {action.id: action for action in ACTIONS}
BY_METHOD: Mapping[str, Action] = {action.method: action for action in ACTIONS}
"""The knobs, which share a method, also share where it works."""


def is_usable(action: Action, *, replay: bool, load: bool) -> bool:
    """Whether an action is available: in a replay or live, with or without a load to drive."""
    if action.needs_load and not load:
        return False
    return action.replay is None or action.replay == replay


def actions_at(screen: ScreenEntry | None) -> tuple[Action, ...]:
    """All actions that can be reached from a screen, those of the app first."""
    return ANYWHERE_ACTIONS if screen is None else (*ANYWHERE_ACTIONS, *screen.keyed)


def bindings_of(actions: Iterable[Action]) -> list[BindingType]:
    """Bindings of a screen's actions, or of the app's."""
    return [action.binding() for action in actions]


def keys_in_force(action: Action, overrides: Mapping[str, str]) -> list[str]:
    """Keys of an action, with the settings applied."""
    return [key.strip() for key in overrides.get(action.id, action.keys).split(",")]


def clashes(overrides: Mapping[str, str]) -> Iterator[tuple[str, Action, Action]]:
    """Keys that two actions of one screen would share, as (key, first, second)."""
    taken: dict[tuple[str, str], Action] = {}
    for action in ACTIONS:
        for key in keys_in_force(action, overrides):
            for screen in _seen_on(action):
                other = taken.setdefault((screen, key), action)
                if other is not action and not _exclusive(other, action):
                    yield key, other, action
                    break


def _exclusive(first: Action, second: Action) -> bool:
    return first.replay is not None and second.replay is not None and first.replay != second.replay


def _seen_on(action: Action) -> Iterable[str]:
    if action.screen == ANYWHERE:
        return tuple(entry.id for entry in SCREENS)
    return tuple(entry.id for entry in SCREENS if entry.id == action.screen or action in entry.borrowed)
