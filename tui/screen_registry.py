"""The registry of screens: tab, keys, palette, help and the app all follow from one entry per screen.

The views are named, not imported: each is imported when it is first shown, as the first paint waits for none of them.
"""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from engine.job.knobs import knob_rows
from engine.replacing import replace
from tui.action import Action


class ScreenEntry(Struct, frozen=True):
    """What is known of a screen before it is imported."""

    id: str
    title: str
    """Text of its tab."""
    short: str
    """The same where there is little room."""
    help: str
    """One line for help and palette."""
    keys: str
    """Default keys in Textual's names, separated by commas; none for a page that other screens open: it has no tab."""
    view: str
    """Class as `module:name` below `tui.screens`; made with the state of the app where the screen has a tab."""
    actions: tuple[Action, ...] = ()
    """What can be done on this screen."""
    shortcuts: tuple[Action, ...] = ()
    """Actions that work on every screen and lead to this one."""
    borrowed: tuple[Action, ...] = ()
    """Actions of another screen that work here with the same keys."""
    tables: tuple[str, ...] = ()
    """Frame tables whose figures it shows, for help."""

    @property
    def opener(self) -> Action:
        """The action that shows it."""
        return Action(f"view.{self.id}", self.help, self.keys, shared="show_screen", parameter=self.id)

    @property
    def keyed(self) -> tuple[Action, ...]:
        """All actions that have a key here, its own first."""
        return (*self.actions, *self.borrowed)


def _entry(
    id_: str,
    title: str,
    help_: str,
    keys: str,
    view: str,
    *actions: Action,
    shortcuts: Iterable[Action] = (),
    short: str = "",
    borrowed: tuple[Action, ...] = (),
    tables: tuple[str, ...] = (),
) -> ScreenEntry:
    own = (replace(action, screen=id_) for action in actions)
    return ScreenEntry(id_, title, short or title, help_, keys, view, tuple(own), tuple(shortcuts), borrowed, tables)


def _load(name: str, title: str, keys: str, short: str) -> Action:
    return Action(f"load.{name}", title, keys, short, replay=False, needs_load=True)


def _sweep(name: str, title: str, keys: str, short: str) -> Action:
    return Action(f"sweep.{name}", title, keys, short, replay=False, needs_load=True)


def _knob(turn: str, title: str, keys: str) -> Action:
    return Action(f"knob.{turn}", title, keys, shared="turn_knob", parameter=turn, replay=False, needs_load=True)


OVERVIEW = _entry(
    "overview",
    "Overview",
    "Overview: disks, charts, host",
    "1",
    "overview:OverviewScreen",
    Action("view.disk", "Details of the disk under the cursor", "enter", "Details"),
    Action("view.subject", "Charts: this disk, all disks, the load", "c", "Charts"),
    short="Over",
    tables=("disks", "processes", "host"),
)
DETAIL = _entry(
    "disk",
    "Details",
    "Details of a disk, path or port",
    "",
    "details:DetailView",
    Action("disk.back", "Back to the previous screen", "escape", "Back", shared="page_back"),
    tables=("disks", "paths", "hbas"),
)
LOAD = _entry(
    "load",
    "Load",
    "Load: job, knobs, live effect",
    "2",
    "load.screen:LoadScreen",
    _load("start", "Start the load (arms it first)", "s", "Start"),
    _load("stop", "Stop the load", "x", "Stop"),
    _load("arm", "Arm: check the targets and fill scratch files", "a", "Arm"),
    _load("edit", "Edit the job; Esc goes back to the knobs", "e", "Edit job"),
    *(_knob(key.id, key.title, key.keys) for _, row in knob_rows() for key in row.keys),
    _load("undo", "Undo the last turn of a knob, then those before it", "U,backspace", "Undo"),
    _load("step", "Steps of the knobs: normal, fine, coarse", "f", "Steps"),
    _load("store_a", "Store the knobs in slot A", "o", ""),
    _load("store_b", "Store the knobs in slot B", "O", ""),
    _load("flip", "Flip between the knobs of A and B", "c", "A/B"),
    shortcuts=(Action("load.here", "Load on the disk or path under the cursor: read only, starts nothing", "L"),),
    tables=("load", "load_total", "load_paths", "load_logical"),
)
EVENTS = _entry(
    "events",
    "Events",
    "Events: knobs, load, paths, hot-plug, notes",
    "3",
    "events:EventsScreen",
    Action("events.unfold", "Open or close the group of events under the cursor: those with one cause", "x", "Unfold"),
)
LATENCY = _entry(
    "latency",
    "Latency",
    "Latency: heat map, peaks, slowest I/Os",
    "4,l",
    "latency.screen:LatencyScreen",
    Action("latency.subject", "Select the subject: load, disk, path, LUN, port", "c", "Subject"),
    Action("latency.direction", "Reads, writes, or both", "d", "Read/write"),
    Action("latency.part", "Whole time, queue time, service time", "t", "Q/S"),
    Action("latency.next_peak", "To the next largest peak", "n", "Peak"),
    Action("latency.mark", "Mark a range from the cursor on, or clear it", "m", "Mark"),
    Action("latency.panel", "Below: peaks, slowest I/Os, waterfall, mean latency", "p", "Panel"),
    Action("latency.zoom_in", "Zoom in (time)", "plus,equals_sign", "Zoom"),
    Action("latency.zoom_out", "More time", "minus"),
    Action("latency.narrow", "Zoom in (latency)", "right_square_bracket"),
    Action("latency.widen", "Zoom out (latency)", "left_square_bracket"),
    Action("latency.zoom_off", "Reset zoom", "0"),
    Action("latency.lines", "Toggle percentile lines", "o"),
    Action("latency.seek", "Seek to the cursor", "enter", "Go there"),
    short="Lat",
    shortcuts=(Action("view.ios", "Slowest I/Os at the cursor", "i"),),
)
PATHS = _entry(
    "paths",
    "Paths",
    "Paths and ports: which path is down, degraded or full",
    "5",
    "paths.screen:PathsScreen",
    Action("paths.open", "Open or close a group, or show a path", "enter", "Open"),
    Action("paths.group", "Group paths by LUN, HBA port, target port, way or policy", "b", "Group by"),
    Action("paths.only", "Show all paths, or those not active, sick or hot", "n", "Filter state"),
    Action("paths.unfold", "Open or close all groups", "x", "Unfold"),
    Action("paths.details", "Details of the path, LUN or port under the cursor", "d", "Details"),
    tables=("paths", "hbas"),
)
TREE = _entry(
    "tree",
    "Tree",
    "Tree: from HBA port to filesystem",
    "6",
    "paths.tree:TreeScreen",
    Action("tree.open", "Open or close a branch, or show what has none", "enter", "Open"),
    Action("tree.unfold", "Open one more level below the cursor", "x", "Unfold"),
    Action("tree.fold", "Close all branches", "X"),
    Action("tree.details", "Details of the port, path or disk under the cursor", "d", "Details"),
    tables=("paths", "hbas", "tapes"),
)
WALL = _entry(
    "wall",
    "Wall",
    "Wall: a cell for every disk",
    "7",
    "wall:WallScreen",
    Action("wall.field", "Colour by heat, busy, service, queue or await", "c", "Colour"),
    Action("wall.order", "Order by storage, by name, or the largest first", "o", "Order"),
    Action("wall.details", "Details of the disk under the cursor", "enter,d", "Details"),
    tables=("disks",),
)
CGROUPS = _entry(
    "cgroups",
    "Cgroups",
    "Cgroups: I/O and throttling by control group",
    "8",
    "cgroups:CgroupsScreen",
    Action("cgroups.disk", "Details of the disk under the cursor", "enter,d", "Disk"),
    Action("cgroups.idle", "Show groups without I/O, too, or hide them", "n", "Idle"),
    short="Cgrp",
    tables=("cgroups",),
)

SWEEP = _entry(
    "sweep",
    "Sweep",
    "Sweep: points, knee, best values; highest rate within limits; published studies",
    "9",
    "sweep.screen:SweepScreen",
    _sweep("use", "Set the live knobs to the point or the rate under the cursor", "enter", "Use"),
    _sweep("rate", "Search the highest rate within limits", "r", "Rate search"),
    _sweep("preset", "Measure a published study: skytap, flashcache, fourcorners ...", "P", "Preset"),
    _sweep("pause", "Pause the sweep after the point in hand, or go on", "p", "Pause sweep"),
    _sweep("skip", "Skip the point being measured", "n", "Skip"),
    _sweep("stop", "Stop the sweep; what was measured is kept", "x", "Stop"),
    Action("sweep.view", "Next view: table, plot, map, targets, answer", "v", "View"),
    Action("sweep.part", "Next sweep or search of those that were measured", "t", "Part"),
    Action("sweep.curve", "Next curve", "c", "Curve"),
    Action("sweep.sort", "Sort by the next column", "o", "Sort"),
    Action("sweep.reverse", "Reverse the order", "O"),
    Action("sweep.figure", "Next figure of the map (IOPS, mean, p99), or next limit of a search", "m"),
    tables=("sweep_points", "rate_points", "isolation_points"),
)

COMPARE = _entry(
    "compare",
    "Compare",
    "Compare: two parts of the time, a verdict for each figure",
    "C",
    "compare.screen:CompareScreen",
    Action("compare.a", "Choose A: an epoch, a load, the time between marks", "a", "A"),
    Action("compare.b", "Choose B, likewise", "b", "B"),
    Action("compare.mark", "Mark this moment: a part ends, another begins", "m", "Mark"),
    Action("compare.swap", "Swap A and B", "x", "Swap"),
    Action("compare.order", "Order by object, verdict or change", "o", "Order"),
    Action("compare.view", "Table and curves, the table, the curves", "v", "View"),
    Action("compare.table", "Choose the tables to compare", "t", "Tables"),
    Action("compare.every", "All figures, and rows without I/O, or the main ones", "n", "All"),
    Action("compare.delta", "Next delta: the largest change that does not matter", "d", "Delta"),
    short="Cmp",
)

PROCESSES = _entry(
    "processes",
    "Processes",
    "Processes of a disk, path, LUN, port or control group, and the devices of a process",
    "",
    "processes:ProcessesView",
    Action("processes.open", "Devices of the process under the cursor, or details of the device", "enter", "Open"),
    Action("processes.every", "Processes of all devices, or of the selected one", "n", "All"),
    Action("processes.back", "Back to the previous screen", "escape", "Back", shared="page_back"),
    tables=("process_ios",),
)

CACHES = _entry(
    "caches",
    "Caches",
    "Caches: hits, misses, bypass, dirty data, blocked writes",
    "",
    "caches:CachesView",
    Action("caches.disk", "Details of the device of the cache under the cursor", "enter,d", "Disk"),
    Action("caches.back", "Back to the previous screen", "escape", "Back", shared="page_back"),
    tables=("caches",),
)

HOSTS = _entry(
    "hosts",
    "Hosts",
    "Hosts of a fleet: totals, hot hosts and disks, who is missing",
    "",
    "hosts:HostsView",
    Action("hosts.open", "Show the host under the cursor alone, on all screens", "enter", "Open"),
    Action("hosts.back", "Back to the previous screen: the disks of all hosts", "escape", "Back", shared="page_back"),
    borrowed=tuple(action for action in LOAD.actions if action.id not in {"load.arm", "load.edit"}),
    tables=("fleet", "fleet_total"),
)

SHEET = _entry(
    "sheet",
    "Sheet",
    "Sheet of a LUN, path or port: map, timeouts, errors, history, totals since cleared",
    "",
    "paths.sheet:SheetView",
    Action("sheet.back", "Back to the previous screen", "escape", "Back", shared="page_back"),
    Action("sheet.host", "Clear the counters of the whole host", "asterisk", "Clear host"),
)

NFS = _entry(
    "nfs",
    "NFS",
    "NFS mounts: operations, transports (nconnect), what limits them",
    "",
    "nfs:NfsView",
    Action("nfs.back", "Back to the previous screen", "escape", "Back", shared="page_back"),
    tables=("nfs", "nfs_transports"),
)

SCREENS = (
    OVERVIEW,
    DETAIL,
    LOAD,
    EVENTS,
    LATENCY,
    PATHS,
    TREE,
    WALL,
    CGROUPS,
    SWEEP,
    COMPARE,
    PROCESSES,
    CACHES,
    HOSTS,
    SHEET,
    NFS,
)
"""Screens in the order of help."""
TABS = tuple(entry for entry in SCREENS if entry.keys)
"""Screens that have a tab, in the order of the tabs."""
