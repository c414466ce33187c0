"""The registry of actions: bindings, key line, help and palette all come from here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from textual.binding import Binding

from engine.job.knobs import knob_rows


class Place(StrEnum):
    """Where an action works: everywhere, or on one screen only."""

    ANYWHERE = "anywhere"
    OVERVIEW = "overview"
    DISK = "disk"
    LOAD = "load"
    LATENCY = "latency"
    EVENTS = "events"
    PATHS = "paths"
    TREE = "tree"
    WALL = "wall"


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a person can do; `load.start` calls `action_load_start` of the screen it belongs to, or of the app."""

    id: str
    title: str
    keys: str
    """Default keys in Textual's names, separated by commas; the first is the one shown."""
    place: Place = Place.ANYWHERE
    short: str = ""
    """Word for the key line; empty keeps the action off it."""
    replay: bool | None = None
    """True: only over a recording; False: only live; None: both."""
    priority: bool = False
    """Whether it comes before what the focused widget does with the key."""

    @property
    def method(self) -> str:
        """Name of the Textual action."""
        return "turn_knob" if self.id.startswith("knob.") else self.id.replace(".", "_")

    @property
    def call(self) -> str:
        """The Textual action with its parameter: all knobs share one."""
        return f"{self.method}('{self.id.removeprefix('knob.')}')" if self.id.startswith("knob.") else self.method

    def binding(self) -> Binding:
        """Make the binding whose key a keymap may replace by the action's id."""
        return Binding(self.keys, self.call, self.title, show=bool(self.short), id=self.id, priority=self.priority)


def _replay(id_: str, title: str, keys: str, short: str = "") -> Action:
    return Action(id_, title, keys, short=short, replay=True, priority=True)


def _latency(id_: str, title: str, keys: str, short: str = "") -> Action:
    return Action(id_, title, keys, Place.LATENCY, short)


def _load(id_: str, title: str, keys: str, short: str = "") -> Action:
    return Action(id_, title, keys, Place.LOAD, short, replay=False)


ACTIONS: tuple[Action, ...] = (
    Action("view.help", "Help: keys, figures, tiers", "question_mark,f1", short="Help"),
    Action("session.quit", "Quit", "q,ctrl+q,ctrl+c", short="Quit"),
    Action("session.suspend", "Suspend: back to the shell; fg returns", "ctrl+z", priority=True),
    Action("session.pause", "Pause the display, or go on", "space", short="Pause"),
    Action("view.overview", "Overview: disks, charts, host", "1"),
    Action("view.load", "Load: job, knobs, live effect", "2"),
    Action("view.events", "Events: what happened when", "3"),
    Action("view.latency", "Latency: heat map, peaks, slowest I/Os", "4,l"),
    Action("view.ios", "Slowest I/Os of the moment under the cursor", "i"),
    Action("view.paths", "Paths and ports: which way is down, sick or full", "5"),
    Action("view.tree", "Tree: from HBA port to filesystem", "6"),
    Action("view.wall", "Wall: a cell for every disk", "7"),
    Action("view.longer", "Charts show a longer past", "z"),
    Action("view.shorter", "Charts show a shorter past", "Z"),
    Action("view.log", "Charts of latency with a logarithmic axis, or a linear one", "y"),
    Action("view.theme", "Next theme", "ctrl+t"),
    Action("session.tags", "Waits for free tags: watched, not watched, or by need", "ctrl+w", replay=False),
    Action("view.disk", "Details of the disk under the cursor", "enter", Place.OVERVIEW, "Details"),
    Action("disk.back", "Back to where it was opened", "escape", Place.DISK, "Back"),
    Action("view.subject", "Charts: this disk, all disks, the load", "c", Place.OVERVIEW, "Charts"),
    _latency("latency.subject", "Choose whose latencies: load, disk, path, LUN, port", "c", "Subject"),
    _latency("latency.direction", "Reads, writes, or both", "d", "Read/write"),
    _latency("latency.part", "Whole time, queue time, service time", "t", "Q/S"),
    _latency("latency.next_peak", "To the next largest peak", "n", "Peak"),
    _latency("latency.mark", "Mark a range from the cursor on, or forget it", "m", "Mark"),
    _latency("latency.panel", "Below: peaks, slowest I/Os, waterfall", "p", "Panel"),
    _latency("latency.zoom_in", "Closer in time", "plus,equals_sign", "Zoom"),
    _latency("latency.zoom_out", "More time", "minus"),
    _latency("latency.narrow", "Closer in latency", "right_square_bracket"),
    _latency("latency.widen", "More of the latencies", "left_square_bracket"),
    _latency("latency.zoom_off", "All of it again", "0"),
    _latency("latency.lines", "Percentile lines on or off", "o"),
    Action("latency.seek", "Go to the cursor's moment", "enter", Place.LATENCY, "Go there", replay=True),
    Action("paths.open", "Open or close a group, or show a path", "enter", Place.PATHS, "Open"),
    Action("paths.group", "Group paths by LUN, HBA port, target port, way or policy", "b", Place.PATHS, "Group by"),
    Action("paths.only", "Show all paths, or those not active, sick or hot", "n", Place.PATHS, "Filter state"),
    Action("paths.unfold", "Open or close all groups", "x", Place.PATHS, "Unfold"),
    Action("paths.details", "Details of the path, LUN or port under the cursor", "d", Place.PATHS, "Details"),
    Action("tree.open", "Open or close a branch, or show what has none", "enter", Place.TREE, "Open"),
    Action("tree.unfold", "Open a level more below the cursor", "x", Place.TREE, "Unfold"),
    Action("tree.fold", "Close all branches", "X", Place.TREE),
    Action("tree.details", "Details of the port, path or disk under the cursor", "d", Place.TREE, "Details"),
    Action("wall.field", "Colour by heat, busy, service, queue or await", "c", Place.WALL, "Colour"),
    Action("wall.order", "Order by name, or the largest first", "o", Place.WALL, "Order"),
    Action("wall.details", "Details of the disk under the cursor", "enter,d", Place.WALL, "Details"),
    _replay("session.step_back", "One sample back", "comma"),
    _replay("session.step_forward", "One sample on", "full_stop", "Step"),
    _replay("session.back", "Back 10 s", "left"),
    _replay("session.forward", "On 10 s", "right"),
    _replay("session.back_minute", "Back 1 min", "shift+left"),
    _replay("session.forward_minute", "On 1 min", "shift+right"),
    _replay("session.first", "To the start", "home"),
    _replay("session.last", "To the end", "end"),
    _replay("session.goto", "Go to a time", "g", "Go to"),
    _replay("session.slower", "Half the speed", "s"),
    _replay("session.faster", "Twice the speed", "f", "Faster"),
    _load("load.start", "Start the load (arms it first)", "s", "Start"),
    _load("load.stop", "Stop the load", "x", "Stop"),
    _load("load.arm", "Arm: check the targets and fill scratch files", "a", "Arm"),
    _load("load.edit", "Edit the job; Esc goes back to the knobs", "e", "Edit job"),
    *(_load(f"knob.{key.id}", key.title, key.keys) for _, row in knob_rows() for key in row.keys),
)
"""In the order of the help screen."""

BY_ID: Mapping[str, Action] = {action.id: action for action in ACTIONS}
BY_METHOD: Mapping[str, Action] = {action.method: action for action in ACTIONS}
"""The knobs, which share a method, also share where it works."""


def is_usable(action: Action, *, replay: bool, load: bool) -> bool:
    """Whether an action can do anything: over a recording or live, with or without a load to drive."""
    if action.place is Place.LOAD and not load:
        return False
    return action.replay is None or action.replay == replay


def actions_of(place: Place) -> Iterator[Action]:
    """All actions that are bound at a place."""
    return (action for action in ACTIONS if action.place is place)


def actions_at(place: Place) -> Iterator[Action]:
    """All actions that can be reached from a place."""
    return (action for action in ACTIONS if action.place in {place, Place.ANYWHERE})


def bindings_of(place: Place) -> list[Binding]:
    """Bindings of a screen, or of the app for those that work anywhere."""
    return [action.binding() for action in actions_of(place)]


def keys_in_force(action: Action, overrides: Mapping[str, str]) -> list[str]:
    """Keys of an action after the operator's own settings."""
    return [key.strip() for key in overrides.get(action.id, action.keys).split(",")]


def clashes(overrides: Mapping[str, str]) -> Iterator[tuple[str, Action, Action]]:
    """Keys that two actions of one place would share, as (key, first, second)."""
    taken: dict[tuple[Place, str], Action] = {}
    for action in ACTIONS:
        for key in keys_in_force(action, overrides):
            for place in _seen_with(action.place):
                other = taken.setdefault((place, key), action)
                if other is not action and not _exclusive(other, action):
                    yield key, other, action
                    break


def _exclusive(first: Action, second: Action) -> bool:
    return first.replay is not None and second.replay is not None and first.replay != second.replay


def _seen_with(place: Place) -> Iterable[Place]:
    return tuple(Place) if place is Place.ANYWHERE else (place,)
