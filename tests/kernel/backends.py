"""The load backends under one set of tests: every test that takes `backend` runs once with each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any, TypeVar

import pytest

from engine import _native
from engine.aio import AioEngine, AioTarget
from engine.backend.protocol import LoadBackend, LoadSettings
from engine.job.spec import Backend, BlockShare, Knobs
from tests import needs

Driven = TypeVar("Driven", bound=LoadBackend)

BACKENDS = [pytest.param(Backend.URING, marks=needs.io_uring), Backend.THREADS, Backend.AIO]
"""Parameters for `@pytest.mark.parametrize("backend", BACKENDS)`."""
NATIVE = BACKENDS[:2]
"""Those that do what the readable reference does not."""

READS, READ_BYTES, READ_PEAK, WRITES, WRITE_BYTES = 0, 1, 3, 4, 5
ERRORS, IN_FLIGHT, QUEUE_DEPTH, ACTIVE, FAILING, EPOCH, SKIPPED = 8, 9, 10, 11, 12, 13, 14
OUTSTANDING_NS = 17
"""Columns of LoadBackend.counters, as collectors.tables.load.schema.LOAD."""


@dataclass(frozen=True)
class OpenFile:
    """A target of any backend: an open descriptor and what the guard would say about it."""

    fd: int
    name: str
    size_bytes: int
    align_bytes: int = 512
    writable: bool = False


def make_engine(backend: str, targets: Sequence[OpenFile], knobs: Knobs, **settings: Any) -> LoadBackend:
    """Set up a load on open files; it is not started."""
    if backend == "aio":
        return AioEngine([AioTarget(*astuple(target)) for target in targets], knobs, **settings)
    native = [
        _native.LoadTarget(target.fd, target.name, target.size_bytes, target.align_bytes, writable=target.writable)
        for target in targets
    ]
    assert backend in {"uring", "threads"}
    return _native.LoadEngine(
        native, knobs, LoadSettings(backend="uring" if backend == "uring" else "threads", **settings)
    )


@contextmanager
def driven(engine: Driven) -> Iterator[Driven]:
    """Run an engine for as long as the block lasts."""
    engine.start()
    try:
        yield engine
    finally:
        assert engine.stop(), "I/Os did not come back"
        assert engine.fault == ""


@contextmanager
def running(backend: str, targets: Sequence[OpenFile], knobs: Knobs, **settings: Any) -> Iterator[LoadBackend]:
    """Run a load for as long as the block lasts."""
    with driven(make_engine(backend, targets, knobs, **settings)) as engine:
        yield engine


@contextmanager
def opened(
    *paths: str | Path, size_bytes: int, writable: bool = False, direct: bool = True
) -> Iterator[list[OpenFile]]:
    """Open targets for as long as the block lasts."""
    flags = (os.O_RDWR if writable else os.O_RDONLY) | (os.O_DIRECT if direct else 0)
    files = [OpenFile(os.open(path, flags), str(path), size_bytes, 512 if direct else 1, writable) for path in paths]
    try:
        yield files
    finally:
        for file in files:
            os.close(file.fd)


def filled_file(path: Path, size_bytes: int = 1 << 20) -> Path:
    """A file full of incompressible data."""
    with path.open("wb") as file:
        assert _native.fill(file.fileno(), 0, size_bytes, seed=1) == size_bytes
        os.fsync(file.fileno())
    return path


def empty_file(path: Path, size_bytes: int = 1 << 20) -> Path:
    """A file of zeros without blocks of its own."""
    with path.open("wb") as file:
        file.truncate(size_bytes)
    return path


def knobs_of(queue_depth: int = 4, block_bytes: int = 4096, **others: Any) -> Knobs:
    """Knobs with one block size."""
    return Knobs(queue_depth=queue_depth, blocks=(BlockShare(block_bytes),), **others)


def eventually(
    condition: Callable[[], object], what: str = "what is waited for", timeout_s: float = 60.0, every_s: float = 0.001
) -> None:
    """Wait for a condition; the limit only ends a test that would otherwise hang."""
    began = time.monotonic()
    deadline = began + timeout_s
    while not condition():
        now = time.monotonic()
        assert now < deadline, f"never came: {what}"
        # To ask a backend of a thousand threads takes time that these threads need.
        time.sleep(max(every_s, 2 * (now - began)))
        began = time.monotonic()


def ios(engine: LoadBackend) -> int:
    """I/Os completed since the start."""
    return int(engine.counters()[:, [READS, WRITES]].sum())


def measuring(engine: LoadBackend) -> bool:
    """Whether the open epoch has settled."""
    return engine.epochs()[-1].start_ns is not None
