"""Badges of real runs on loop devices: what they are full of, and whether the disk below has a volatile cache."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from engine import _native
from engine.job.spec import Backend, JobSpec, Knobs, Mode, Permissions, TargetSpec
from engine.results.badge import Badge, BadgeKind
from engine.results.caveats import run_badges
from engine.results.result import RunResult
from engine.results.result_document import run_document
from engine.running.driver import LoadDriver
from engine.syscalls import cached_bytes
from tests import needs
from tests.kernel.backends import BACKENDS
from tests.unit.documents.printed import run_text, unwrapped

MIB = 1 << 20
MakeLoop = Callable[..., str]


def run(
    devices: Sequence[str], backend: Backend, knobs: Knobs, permissions: Permissions, sampled_reads: int = 30
) -> tuple[RunResult, tuple[Badge, ...]]:
    """Drive a load until so many of its reads were sampled, or so many I/Os done; also the badges before it began."""
    targets = tuple(TargetSpec(device) for device in devices)
    driver = LoadDriver(JobSpec(targets, knobs, backend=backend), permissions)
    try:
        driver.prepare(lambda _: None)
        before = driver.badges
        driver.start()
        deadline_s = time.monotonic() + 60
        while not _done(driver, sampled_reads):
            assert time.monotonic() < deadline_s, "never came: the I/Os"
            time.sleep(0.01)
    finally:
        assert driver.stop()
    return driver.result(), before


def _done(driver: LoadDriver, sampled_reads: int) -> bool:
    assert driver._prepared_run is not None
    engine = driver._prepared_run.engine
    busy = (
        driver._knobs.knobs.read_pct == 0
        or (engine.contents()[: driver._knobs.knobs.stripe_width, 0] >= sampled_reads).all()
    )
    return bool(busy) and int(engine.counters()[:, [0, 4]].sum()) >= 200


def kinds(badges: Sequence[Badge]) -> set[BadgeKind]:
    return {badge.kind for badge in badges} - {BadgeKind.SHORT, BadgeKind.FEW_SAMPLES, BadgeKind.HOST_BUSY}


def fill(device: str, size_bytes: int) -> None:
    with Path(device).open("rb+") as file:
        assert _native.fill(file.fileno(), 0, size_bytes, seed=1) == size_bytes


@needs.loop
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_device_never_written_is_known_before_and_while_it_is_read(backend: Backend, make_loop: MakeLoop) -> None:
    device = make_loop(8 * MIB)
    result, before = run([device], backend, Knobs(queue_depth=2), Permissions())
    (sampled,) = before
    assert (sampled.kind, sampled.label, sampled.share) == (BadgeKind.ZEROS, "zeros 100 %", 1.0)
    assert sampled.line == f"{device}: 100 % of 64 sampled blocks are zeros: they may never reach storage"
    zeros = next(badge for badge in run_badges(result) if badge.kind is BadgeKind.ZEROS)
    assert zeros.share == 1.0
    assert "reads sampled are zeros" in zeros.text
    assert f": {device}: 100 % of" in unwrapped(run_text(result))
    document = json.loads(json.dumps(run_document(result), allow_nan=False))
    assert {"id": "zeros", "targets": [device], "share": 1.0} == {
        key: badge[key] for badge in document["badges"] if badge["id"] == "zeros" for key in ("id", "targets", "share")
    }


@needs.loop
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_filled_device_has_no_badge(backend: Backend, make_loop: MakeLoop) -> None:
    device = make_loop(8 * MIB)
    fill(device, 8 * MIB)
    result, before = run([device], backend, Knobs(queue_depth=2), Permissions())
    assert before == ()
    assert kinds(run_badges(result)) <= {BadgeKind.DRIVER_BOUND}


@needs.loop
@pytest.mark.parametrize("backend", BACKENDS)
def test_targets_are_judged_by_themselves(backend: Backend, make_loop: MakeLoop) -> None:
    """One is full of text, one half zeros, one filled."""
    text, half, full = (make_loop(8 * MIB) for _ in range(3))
    Path(text).write_bytes((b"2026-11-21 12:00:00 kernel: sd 2:0:0:1: [sdb] ready\n" * 165_000)[: 8 * MIB])
    fill(half, 4 * MIB)
    fill(full, 8 * MIB)
    result, before = run(
        [text, half, full], backend, Knobs(queue_depth=2, stripe_width=3), Permissions(), sampled_reads=60
    )
    assert {(badge.kind, badge.targets) for badge in before} == {
        (BadgeKind.COMPRESSIBLE, (text,)),
        (BadgeKind.ZEROS, (half,)),
    }
    compressible, zeros = (
        next(badge for badge in run_badges(result) if badge.kind is kind)
        for kind in (BadgeKind.COMPRESSIBLE, BadgeKind.ZEROS)
    )
    assert compressible.targets == (text,)
    assert compressible.share == 1.0
    assert zeros.targets == (half,)
    assert zeros.share is not None
    # Sixty draws of one half: within five standard deviations.
    assert 0.17 < zeros.share < 0.83


@needs.loop
def test_a_file_with_holes_is_unwritten_by_its_share(make_loop: MakeLoop, tmp_path: Path) -> None:
    path = tmp_path / "holes"
    with path.open("wb") as file:
        assert _native.fill(file.fileno(), 0, 2 * MIB, seed=1) == 2 * MIB
        file.truncate(8 * MIB)
    result, before = run([str(path)], Backend.THREADS, Knobs(queue_depth=2), Permissions())
    (unwritten,) = before
    assert (unwritten.kind, unwritten.share, unwritten.label) == (BadgeKind.UNWRITTEN, 0.75, "unwritten 75 %")
    assert {BadgeKind.UNWRITTEN, BadgeKind.ZEROS} <= kinds(run_badges(result))


@contextmanager
def write_cache(device: str, state: str) -> Iterator[None]:
    """Say of a loop device that it has a volatile cache or none; it would remember that beyond its detaching."""
    file = Path("/sys/block", Path(device).name, "queue/write_cache")
    before = file.read_text()
    file.write_text(state)
    try:
        yield
    finally:
        file.write_text(before)


@needs.loop
@pytest.mark.parametrize(
    ("state", "mode", "label", "words"),
    [
        ("write back", Mode.DIRECT, "write cache on", "writes return before they are on the medium"),
        ("write back", Mode.DSYNC, "write cache on", "each write waits for a flush of it"),
        ("write through", Mode.DIRECT, "write cache off", "a write that returned is on the medium"),
    ],
)
def test_the_write_cache_is_reported_to_who_writes(
    state: str, mode: Mode, label: str, words: str, make_loop: MakeLoop
) -> None:
    device = make_loop(8 * MIB)
    fill(device, 8 * MIB)
    permissions = Permissions(frozenset({device}), destroy_data=True)
    with write_cache(device, state):
        result, _ = run([device], Backend.THREADS, Knobs(read_pct=0.0, mode=mode), permissions)
    cache = next(badge for badge in run_badges(result) if badge.kind is BadgeKind.WRITE_CACHE)
    assert cache.label == label
    assert words in cache.text
    read, _ = run([device], Backend.THREADS, Knobs(), permissions)
    assert BadgeKind.WRITE_CACHE not in kinds(run_badges(read))


@needs.loop
@needs.io_uring
def test_what_lunscope_wrote_is_no_compressible_data(make_loop: MakeLoop) -> None:
    device = make_loop(4 * MIB)
    permissions = Permissions(frozenset({device}), destroy_data=True)
    knobs = Knobs(queue_depth=8, read_pct=50.0)
    fill(device, 4 * MIB)
    result, _ = run([device], Backend.URING, knobs, permissions, sampled_reads=100)
    assert not kinds(run_badges(result)) & {BadgeKind.ZEROS, BadgeKind.COMPRESSIBLE}


@needs.loop
def test_buffered_reads_of_what_is_in_memory_say_so(make_loop: MakeLoop) -> None:
    device = make_loop(8 * MIB)
    fill(device, 8 * MIB)
    # The cache of a device goes with the last who has it open.
    with Path(device).open("rb") as held:
        held.read()
        if cached_bytes(held.fileno(), 8 * MIB) is None:
            pytest.skip("this kernel has no cachestat (6.5)")
        knobs = Knobs(queue_depth=2, mode=Mode.BUFFERED)
        buffered, before = run([device], Backend.THREADS, knobs, Permissions())
    assert [badge.label for badge in before] == ["page cache 100 %"]
    assert BadgeKind.PAGE_CACHE in kinds(run_badges(buffered))
    direct, _ = run([device], Backend.THREADS, Knobs(queue_depth=2), Permissions())
    assert BadgeKind.PAGE_CACHE not in kinds(run_badges(direct))
