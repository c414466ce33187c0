"""Threads of a load run on the processors that were named, those that a turn starts as well."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.errors import UsageError
from engine.job.spec import Backend, JobSpec, Knobs, Permissions, TargetSpec
from engine.job.validate import validate
from engine.replacing import replace
from engine.running.control import LoadControl
from tests.kernel.backends import eventually


def _workers() -> list[Path]:
    """Threads that do I/O; the clock of the load is none."""
    names = {thread: (thread / "comm").read_text() for thread in Path("/proc/self/task").iterdir()}
    return [thread for thread, name in names.items() if name.startswith("load") and "clock" not in name]


@pytest.mark.parametrize("backend", [Backend.THREADS, Backend.AUTO])
def test_threads_run_where_they_were_told_to(control: LoadControl, backend: Backend) -> None:
    own = os.sched_getaffinity(0)
    cpu = max(own)
    job = JobSpec((TargetSpec(),), Knobs(queue_depth=2), backend=backend, cpus=(cpu,), size_bytes=1 << 20)
    control.arm(job, Permissions())
    control.start()
    first = {thread.name for thread in _workers()}
    assert first
    control.turn(replace(job.knobs, queue_depth=4, threads=2))
    eventually(lambda: len(_workers()) > len(first), "more threads")
    assert {frozenset(os.sched_getaffinity(int(thread.name))) for thread in _workers()} == {frozenset({cpu})}
    assert os.sched_getaffinity(0) == own


def test_processors_that_are_not_there_are_refused(control: LoadControl) -> None:
    job = JobSpec((TargetSpec(),), cpus=(0, 65535), size_bytes=1 << 20)
    with pytest.raises(UsageError, match="--cpus: this process may not run on 65535"):
        control.arm(job, Permissions())
    with pytest.raises(UsageError, match="the aio engine does not drive processors of its own"):
        validate(replace(job, backend=Backend.AIO))
