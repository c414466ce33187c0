"""Every registered screen and every dialog, each over frozen samples and with the keys that lead there.

A new screen with a tab is among them by itself. One without a tab needs an entry in `_OF_PAGES`, one that shows only
samples of its own kind an entry in `_SAMPLES`; a class of dialogs needs an entry in DIALOGS.
"""

from __future__ import annotations

import asyncio
import fcntl
import functools
import importlib
import os
import pkgutil
import pty
import struct
import termios
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from types import ModuleType

import pytest
from textual.pilot import Pilot

import tui.screens
from collectors.model import Rows, Sample, Topology
from engine.job.spec import BlockShare, JobSpec, Knobs, TargetSpec
from engine.replacing import replace
from engine.running.control import LoadControl
from tests.app.cache_samples import with_caches
from tests.app.cgroup_samples import with_cgroups
from tests.app.compare_samples import FASTER, QUIET, epochs
from tests.app.fleet_samples import with_hosts
from tests.app.latency_samples import with_latencies
from tests.app.multipath import multipath_samples
from tests.app.nfs_samples import with_nfs_latencies
from tests.app.process_samples import with_processes
from tests.app.sources import ListSource, make_samples, with_load
from tests.app.stage import FROZEN, make_app, screen_text, skip, until
from tests.app.sweep_states import StillSession
from tui.app.app import LunscopeApp
from tui.load.form import FORM
from tui.screen_registry import (
    CACHES,
    CGROUPS,
    COMPARE,
    DETAIL,
    HOSTS,
    LATENCY,
    LOAD,
    NFS,
    OVERVIEW,
    PATHS,
    PROCESSES,
    SCREENS,
    SHEET,
    SWEEP,
    TREE,
    WALL,
)
from tui.screens.shared.base import View, view_class
from tui.screens.tune.form import TuneForm
from tui.settings import Settings
from tui.terminal.tty import TerminalUse, Tty
from tui.textual_internals import driver
from tui.textual_internals.laid_out import Modal

SIZES = ((80, 24), (120, 40), (200, 60))
COUNT = 24
JOB = JobSpec(
    targets=(TargetSpec("/dev/vdb"), TargetSpec("/dev/sdc")),
    knobs=Knobs(queue_depth=16, stripe_width=2, blocks=(BlockShare(8192),), read_pct=50.0),
)

Samples = Callable[[], Sequence[Sample]]


def _plain() -> Sequence[Sample]:
    return with_load(make_samples(count=COUNT))


def _paths() -> Sequence[Sample]:
    return multipath_samples(COUNT)


_SAMPLES: Mapping[str, Samples] = {
    LATENCY.id: lambda: with_latencies(make_samples(count=COUNT)),
    PATHS.id: _paths,
    SHEET.id: _paths,
    TREE.id: _paths,
    WALL.id: _paths,
    CGROUPS.id: lambda: with_cgroups(make_samples(count=COUNT)),
    PROCESSES.id: lambda: with_processes(make_samples(count=COUNT)),
    CACHES.id: lambda: with_caches(make_samples(count=COUNT)),
    NFS.id: lambda: with_nfs_latencies(make_samples(count=COUNT)),
    HOSTS.id: lambda: with_hosts(make_samples(count=COUNT)),
    COMPARE.id: lambda: epochs(QUIET, FASTER, seconds=COUNT // 2),
}
_ALIKE = {screen: PATHS.id for screen, samples in _SAMPLES.items() if samples is _paths}
_OF_PAGES: Mapping[str, tuple[str, ...]] = {
    DETAIL.id: ("enter",),
    PROCESSES.id: ("J",),
    CACHES.id: ("h",),
    NFS.id: ("f4",),
    HOSTS.id: ("f3",),
    SHEET.id: ("G",),
}
_FURTHER: Mapping[str, tuple[str, ...]] = {PATHS.id: ("x",), TREE.id: ("x", "x", "x")}
"""Keys on a screen, so that there is more on it."""


@dataclass(frozen=True)
class Scene:
    """One screen or dialog."""

    id: str
    keys: tuple[str, ...]
    screen: str
    """Id of the screen it is, or that it is opened from."""
    dialog: str = ""
    """Name of the class of a dialog."""

    @property
    def samples(self) -> Sequence[Sample]:
        """What is shown."""
        return _samples(samples_of(self))


def samples_of(scene: Scene) -> str:
    """Name the samples of a scene; those of the same name are the same."""
    return _ALIKE.get(scene.screen, scene.screen) if scene.screen in (*_SAMPLES, SWEEP.id) else ""


@functools.cache
def _samples(name: str) -> Sequence[Sample]:
    return _SAMPLES.get(name, _plain)()


def _scene(screen: str, *further: str, name: str = "", dialog: str = "") -> Scene:
    entry = next(entry for entry in SCREENS if entry.id == screen)
    there = entry.keys.split(",")[:1] if entry.keys else _OF_PAGES[screen]
    return Scene(name or screen, (*there, *further), screen, dialog)


_TO_EXISTING_DATA = ("tab",) * (len(FORM) - 2)
"""From the first field of the form to the last, without the policy, which is hidden."""
VIEWS = tuple(_scene(entry.id, *_FURTHER.get(entry.id, ())) for entry in SCREENS)
DIALOGS = (
    _scene(OVERVIEW.id, "question_mark", name="help", dialog="HelpScreen"),
    _scene(OVERVIEW.id, "exclamation_mark", name="alerts", dialog="AlertsDialog"),
    _scene(PATHS.id, "ctrl+p", name="palette", dialog="Chooser"),
    _scene(OVERVIEW.id, "V", name="columns", dialog="ColumnDialog"),
    _scene(OVERVIEW.id, "E", name="column help", dialog="ColumnHelp"),
    _scene(OVERVIEW.id, "f2", name="settings", dialog="SettingsDialog"),
    _scene(OVERVIEW.id, "A", name="note", dialog="Dialog"),
    _scene(LOAD.id, "s", name="write", dialog="ConfirmWrite"),
    _scene(LOAD.id, "e", *_TO_EXISTING_DATA, "right", name="destroy", dialog="TypeToConfirm"),
    _scene(LOAD.id, "L", name="targets", dialog="TargetPicker"),
    _scene(LATENCY.id, "c", name="latencies of", dialog="Chooser"),
    _scene(PATHS.id, "F", name="tune", dialog="TuneDrawer"),
    _scene(COMPARE.id, "a", name="part", dialog="Chooser"),
)
OTHERS = (
    _scene(OVERVIEW.id, "slash", *"v iops>", name="filter"),
    _scene(LOAD.id, "e", "tab", name="form"),
)
SCENES = (*VIEWS, *DIALOGS, *OTHERS)


_DRAWN_PARTS = frozenset({TuneForm})
"""Classes of dialogs that are never shown by themselves."""


def dialog_classes() -> Iterator[type[Modal[object]]]:
    """All classes of dialogs that the program can show."""
    _load_all(tui.screens)
    waiting: list[type[Modal[object]]] = [Modal]
    while waiting:
        found = waiting.pop().__subclasses__()
        own = (kind for kind in found if "[" not in kind.__name__ and kind.__module__.startswith("tui."))
        yield from (kind for kind in own if kind not in _DRAWN_PARTS)
        waiting += found


def _load_all(package: ModuleType) -> None:
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        importlib.import_module(module.name)


def staged(
    scene: Scene, settings: Settings = FROZEN, samples: Sequence[Sample] | None = None
) -> tuple[LunscopeApp, ListSource, LoadControl]:
    """Make the app for a scene; who runs it closes the load."""
    source, control = ListSource(scene.samples if samples is None else samples), LoadControl()
    sweep = StillSession(control) if scene.screen == SWEEP.id else None
    return make_app(source, control, JOB, settings=settings, sweep=sweep), source, control


@asynccontextmanager
async def opened(
    scene: Scene,
    size: tuple[int, int],
    settings: Settings = FROZEN,
    samples: Sequence[Sample] | None = None,
    terminal: Terminal | None = None,
) -> AsyncIterator[Pilot[None]]:
    """Run the app, and go to a scene; on a terminal if one is given."""
    app, source, control = staged(scene, settings, samples)
    if terminal is not None:
        terminal.resize(*size)
        app.terminal = terminal.use
    async with app.run_test(size=size, headless=terminal is None) as pilot:
        await pilot.pause()
        await to_scene(pilot, scene, source)
        yield pilot
    control.close()


async def to_scene(pilot: Pilot[None], scene: Scene, source: ListSource) -> None:
    """Play the samples, press the keys, and wait for what they lead to."""
    await skip(pilot, source, len(source.samples))
    await keys_pressed(pilot, scene)


async def keys_pressed(pilot: Pilot[None], scene: Scene) -> None:
    """Press the keys, and wait for what they lead to."""
    for key in scene.keys:
        await pilot.press(key)
        await pilot.pause()
    await until(pilot, lambda: is_shown(pilot.app, scene))
    await until(pilot, lambda: "checking" not in screen_text(pilot))
    await pilot.pause()


def is_shown(app: object, scene: Scene) -> bool:
    """Whether the scene is on the screen."""
    assert isinstance(app, LunscopeApp)
    if scene.dialog:
        return type(app.screen).__name__ == scene.dialog
    entry = next(entry for entry in SCREENS if entry.id == scene.screen)
    return isinstance(app.screen, view_class(entry)) and isinstance(app.screen, View)


class Terminal:
    """A pseudo-terminal on which an app of this process draws with its own driver."""

    def __init__(self) -> None:
        self._master, self._slave = pty.openpty()
        os.set_blocking(self._master, False)
        os.set_blocking(self._slave, False)
        self.use = TerminalUse(Tty(self._slave), lambda _reason: None, lambda: False)
        self.sent = bytearray()
        asyncio.get_running_loop().add_reader(self._master, self._read)

    def _read(self) -> None:
        with suppress(BlockingIOError, OSError):
            self.sent += os.read(self._master, 1 << 20)

    def resize(self, columns: int, lines: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def close(self) -> None:
        self._read()
        asyncio.get_running_loop().remove_reader(self._master)
        os.close(self._master)
        self.use.tty.close()


@asynccontextmanager
async def a_terminal() -> AsyncIterator[Terminal]:
    """Make a terminal, and close it; who ends on it need not wait for its answer, which this process could not give."""
    terminal = Terminal()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(driver, "ANSWER_S", 0.0)
        try:
            yield terminal
        finally:
            terminal.close()


def tainted(samples: Sequence[Sample], taint: str) -> list[Sample]:
    """The samples with this text in every name: of devices, ports, targets, paths, mounts, groups, host and notices."""
    made: dict[int, object] = {}

    def once(value: object, make: Callable[[], object]) -> object:
        """Samples share what does not change, and screens go by that."""
        return made.setdefault(id(value), make())

    return [_tainted(sample, taint, once) for sample in samples]


def _tainted(sample: Sample, taint: str, once: Callable[[object, Callable[[], object]], object]) -> Sample:
    def rows(rows: Rows) -> Rows:
        fresh = once(rows, lambda: Rows(rows.keys, tuple(name + taint for name in rows.names)))
        assert isinstance(fresh, Rows)
        return fresh

    tables = {
        name: table if name == "host" else replace(table, rows=rows(table.rows))
        for name, table in sample.tables.items()
    }
    histograms = {name: replace(each, rows=rows(each.rows)) for name, each in sample.histograms.items()}
    topology = once(sample.topology, lambda: _tainted_topology(sample, taint))
    assert isinstance(topology, Topology)
    events = tuple(replace(event, text=event.text + taint) for event in sample.events)
    return replace(sample, tables=tables, histograms=histograms, topology=topology, events=events)


def _tainted_topology(sample: Sample, taint: str) -> object:
    topology, graph = sample.topology, sample.topology.graph

    def changed(thing: object, *names: str) -> object:
        return replace(thing, **{name: getattr(thing, name) + taint for name in names})  # type: ignore[type-var]

    devices = {
        key: changed(device, "name", "model", "vendor", "serial", "friendly_name", "persistent_id", "scheduler")
        for key, device in topology.devices.items()
    }
    lists = {
        "ports": ("name", "label", "address", "driver", "state", "speed"),
        "targets": ("name", "array", "label"),
        "luns": ("name", "policy"),
        "paths": ("name", "address"),
        "layers": ("name", "label", "kind"),
        "mounts": ("point", "filesystem"),
    }
    new = {name: tuple(changed(each, *fields) for each in getattr(graph, name)) for name, fields in lists.items()}
    host = replace(topology.host, hostname=f"host{taint}", kernel=taint, notices=(taint, taint))
    return replace(topology, devices=devices, graph=replace(graph, **new), host=host)  # type: ignore[arg-type]
