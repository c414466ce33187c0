"""Races of the guard against mounts, claims, loop devices and names that change while it looks.

A second thread does one thing to what is being opened, at a random moment, and undoes it at another. What is
right is known by time: who uses the bytes from before a check until after it must be found. Nothing is ever written.
"""

from __future__ import annotations

import gc
import os
import random
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from unittest.mock import patch

from engine.errors import LunscopeError
from engine.guard import OpenTarget, open_targets
from engine.guard.claim_check import ClaimCheck
from engine.hostfs.writers import Writers
from engine.job.spec import JobSpec, Knobs, Mode, Permissions, TargetSpec
from tests.fuzz import kernel_storage as kernel

LONGEST_S = 5.0
"""How long one race may take; a tenth of a second is usual."""
_PATIENCE_S = 30.0
"""How long what is put back between two races may take on a machine that others keep busy."""
_BYTES = 8 << 20
_LATEST_S = 0.004
"""Random moments are up to so much later than the step they follow."""
_STEPS = 4
"""Before opening, opened, checked again, watched."""


_BEGUN_BEFORE = 0.5
"""Share of the interferences meant to begin at the start that have begun for certain when opening begins."""


class Steps:
    """Where the guard is, for who wants to interfere at a certain step."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._reached = 0

    def reach(self, step: int) -> None:
        """Say that a step is done."""
        with self._changed:
            self._reached = max(self._reached, step)
            self._changed.notify_all()

    def wait(self, step: int, then_s: float) -> None:
        """Wait for a step, and a moment."""
        with self._changed:
            self._changed.wait_for(lambda: self._reached >= step)
        time.sleep(then_s)


@dataclass
class Use:
    """Who used which bytes, and when for certain."""

    what: str
    store: int
    began_s: float
    ended_s: float = float("inf")


@dataclass
class World:
    """Two loop devices over one filesystem image, one over another, a plain file, and a name that leads to a device."""

    folder: Path
    nodes: list[str] = field(default_factory=list)
    uses: list[Use] = field(default_factory=list)

    @property
    def point(self) -> str:
        return str(self.folder / "point")

    @property
    def name(self) -> str:
        return str(self.folder / "name")

    @property
    def plain(self) -> str:
        return str(self.folder / "plain")

    def image_of(self, node: str) -> str:
        return str(self.folder / ("other" if node == self.nodes[2] else "image"))

    def store_of(self, fd: int) -> int:
        """Inode of the file whose bytes a descriptor shows; all are on one filesystem."""
        for index, node in enumerate(self.nodes):
            if os.fstat(fd).st_rdev == Path(node).stat().st_rdev:
                return Path(self.image_of(self.nodes[index])).stat().st_ino
        return os.fstat(fd).st_ino

    def restore(self) -> None:
        """Put everything back for the next race."""
        with suppress(OSError):
            kernel.unmount(self.point)
        for node in self.nodes[:3]:
            deadline_s = time.monotonic() + _PATIENCE_S
            while not kernel.is_attached(node):
                with suppress(OSError):
                    kernel.attach(node, self.image_of(node))
                assert time.monotonic() < deadline_s, f"{node} cannot be attached again"
        for node in self.nodes[3:]:
            with suppress(OSError):
                kernel.detach(node)
        if not Path(self.plain).exists():
            Path(self.plain).write_bytes(bytes(_BYTES))
        self.point_to(self.nodes[0])
        self.uses.clear()

    def point_to(self, node: str) -> None:
        fresh = self.folder / "fresh"
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(node)
        fresh.rename(self.name)


@contextmanager
def _use(world: World, what: str, node: str) -> Iterator[None]:
    use = Use(what, Path(world.image_of(node)).stat().st_ino, time.monotonic())
    world.uses.append(use)
    try:
        yield
    finally:
        use.ended_s = time.monotonic()


Hold = Callable[[], None]
"""Waits for the second random moment."""


def _mounted(world: World, dice: random.Random, hold: Hold) -> None:
    node = dice.choice(world.nodes[:3])
    kernel.mount(node, world.point)
    kept = -1
    try:
        with _use(world, "mounted", node):
            if dice.random() < 0.5:
                kept = os.open(f"{world.point}/kept", os.O_RDWR | os.O_CREAT)
                kernel.unmount(world.point, lazily=True)
            hold()
    finally:
        if kept >= 0:
            os.close(kept)
        else:
            kernel.unmount(world.point)


def _claimed(world: World, dice: random.Random, hold: Hold) -> None:
    node = dice.choice(world.nodes[:3])
    fd = os.open(node, os.O_RDONLY | os.O_EXCL)
    try:
        with _use(world, "claimed", node):
            hold()
    finally:
        os.close(fd)


def _detached(world: World, dice: random.Random, hold: Hold) -> None:
    node = dice.choice(world.nodes[:3])
    kernel.detach(node)
    hold()
    with suppress(OSError):
        kernel.attach(node, world.image_of(node))


def _resized(world: World, dice: random.Random, hold: Hold) -> None:
    node = dice.choice(world.nodes[:3])
    os.truncate(world.image_of(node), _BYTES // 2)
    try:
        kernel.set_capacity(node)
        hold()
    finally:
        os.truncate(world.image_of(node), _BYTES)
        kernel.set_capacity(node)


def _attached(world: World, dice: random.Random, hold: Hold) -> None:
    node, image = world.nodes[3], dice.choice((world.plain, world.image_of(world.nodes[0])))
    kernel.attach(node, image)
    use = Use("attached", Path(image).stat().st_ino, time.monotonic())
    if image == world.plain:
        world.uses.append(use)
    hold()
    use.ended_s = time.monotonic()
    kernel.detach(node)


def _renamed(world: World, dice: random.Random, hold: Hold) -> None:
    aside = Path(f"{world.plain}.aside")
    Path(world.plain).rename(aside)
    hold()
    aside.rename(world.plain)


def _unlinked(world: World, dice: random.Random, hold: Hold) -> None:
    Path(world.plain).unlink()
    hold()
    Path(world.plain).write_bytes(bytes(_BYTES))


def _redirected(world: World, dice: random.Random, hold: Hold) -> None:
    """The name leads to another device, which is in use."""
    fd = os.open(world.nodes[2], os.O_RDONLY | os.O_EXCL)
    try:
        with _use(world, "claimed", world.nodes[2]):
            world.point_to(world.nodes[2])
            hold()
            world.point_to(world.nodes[0])
    finally:
        os.close(fd)


_ON_DEVICES = (_mounted, _claimed, _detached, _resized, _attached, _redirected, _renamed, _unlinked)
_ON_FILES = (_renamed, _unlinked)


@dataclass(frozen=True, slots=True)
class _Checked:
    """One check that accepted, from when to when."""

    step: str
    began_s: float
    ended_s: float


def run(seed: int, count: int, seconds: float) -> int:
    """Run up to `count` races within about `seconds`; without root only those of files.

    Raises:
        AssertionError: something in use was accepted, an unclear error was raised, or a race took too long.
    """
    may_attach = os.geteuid() == 0 and Path("/dev/loop-control").exists() and shutil.which("mkfs.ext4") is not None
    end_s = time.monotonic() + seconds
    with ExitStack() as stack:
        world = _make_world(_temporary_folder(stack), stack, may_attach=may_attach)
        # Going through all processes is no part of the races and would make them ten times as slow.
        stack.enter_context(patch("engine.guard.usage_snapshot.read_writers", lambda *_: Writers()))
        stack.enter_context(patch("engine.guard.usage_snapshot.add_in_flight", lambda *_: None))
        stack.enter_context(patch("engine.guard.usage_snapshot.unseen_writers", lambda *_: ()))
        stack.enter_context(patch("engine.guard.claims._BETWEEN_TRIES_S", 0.001))
        stack.enter_context(patch("engine.guard.facts._SAMPLES", 1))
        gc.collect()
        before = _open_descriptors()
        for index in range(count):
            if time.monotonic() >= end_s:
                return index
            _race(world, random.Random(f"{seed} {index}"), f"race {index} of seed {seed}", may_attach=may_attach)
            left = _open_descriptors() - before
            assert not left, f"race {index} of seed {seed} left descriptors open: {sorted(left)}"
    return count


def _temporary_folder(stack: ExitStack) -> Path:
    """Return a folder in memory where there is one: the races are about names and claims, not about a disk."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return Path(stack.enter_context(tempfile.TemporaryDirectory(dir=memory)))


def _make_world(folder: Path, stack: ExitStack, *, may_attach: bool) -> World:
    world = World(folder)
    (folder / "point").mkdir()
    (folder / "plain").write_bytes(bytes(_BYTES))
    if not may_attach:
        return world
    for name in ("image", "other"):
        (folder / name).write_bytes(bytes(_BYTES))
        subprocess.run(["mkfs.ext4", "-qF", str(folder / name)], check=True)
    world.nodes = kernel.add_loop_nodes(4)
    for node in world.nodes:
        stack.callback(kernel.remove_loop_node, node)
    for node in world.nodes:
        stack.callback(_detach_quietly, node)
    world.restore()
    return world


def _detach_quietly(node: str) -> None:
    with suppress(OSError):
        kernel.detach(node)


def _open_descriptors() -> set[tuple[str, str]]:
    """Numbers of the open descriptors and what each is of; without the one that lists them, which is gone again."""
    opened = set()
    for path in Path("/proc/self/fd").iterdir():
        with suppress(OSError):
            opened.add((path.name, str(path.readlink())))
    return {each for each in opened if not each[1].endswith(f"/{os.getpid()}/fd")}


def _race(world: World, dice: random.Random, name: str, *, may_attach: bool) -> None:
    action = dice.choice(_ON_DEVICES if may_attach else _ON_FILES)
    path = dice.choice([world.plain, *([world.nodes[0], world.nodes[1], world.name] if may_attach else [])])
    first, last = sorted(dice.choices(range(_STEPS), k=2))
    moments = [(first, dice.uniform(0, _LATEST_S)), (last, dice.uniform(0, _LATEST_S))]
    steps, begun = Steps(), threading.Event()
    failures: list[BaseException] = []

    def hold() -> None:
        begun.set()
        steps.wait(*moments[1])

    def interfere() -> None:
        steps.wait(*moments[0])
        try:
            action(world, dice, hold)
        except OSError:
            # The guard was first, and the kernel kept this one off.
            return
        except BaseException as error:
            failures.append(error)
        finally:
            begun.set()

    began_s = time.monotonic()
    other = threading.Thread(target=interfere)
    other.start()
    if dice.random() < _BEGUN_BEFORE and first == 0:
        begun.wait()
    try:
        passed, store = _open_and_check(world, path, steps)
    except LunscopeError:
        passed, store = [], 0
    except Exception as error:
        raise AssertionError(f"{name} ({action.__name__} of {path}): {type(error).__name__}: {error}") from error
    finally:
        steps.reach(_STEPS)
        other.join()
    for check in passed:
        for use in world.uses:
            covers = use.began_s < check.began_s and use.ended_s > check.ended_s
            assert not (covers and use.store == store), f"{name}: {check.step} accepted {path} while it was {use.what}"
    assert not failures, f"{name}: {action.__name__}: {failures[0]!r}"
    took_s = time.monotonic() - began_s
    assert took_s < LONGEST_S, f"{name} ({action.__name__} of {path}) took {took_s:.1f} s"
    if may_attach:
        world.restore()


def _open_and_check(world: World, path: str, steps: Steps) -> tuple[list[_Checked], int]:
    mode = Mode.BUFFERED if path == world.plain else Mode.DIRECT
    job = JobSpec((TargetSpec(path),), Knobs(read_pct=50.0, mode=mode))
    passed: list[_Checked] = []
    opened: list[OpenTarget] = []

    def check(step: str, accept: Callable[[], object]) -> None:
        began_s = time.monotonic()
        accept()
        passed.append(_Checked(step, began_s, time.monotonic()))
        steps.reach(len(passed))

    store = 0
    try:
        check("opening", lambda: opened.extend(open_targets(job, Permissions(frozenset({path}), destroy_data=True))))
        store = world.store_of(opened[0].fd)
        check("recheck", opened[0].recheck)
        check("watch", lambda: ClaimCheck(opened).run())
    except LunscopeError:
        return passed, store
    finally:
        for target in opened:
            target.close()
    return passed, store
