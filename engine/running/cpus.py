"""The processors of the threads of a load: they inherit those of the thread that starts them (pthread_create(3))."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from engine.errors import UsageError
from engine.job.cpu_list import format_cpus


@contextmanager
def started_on(cpus: Sequence[int]) -> Iterator[None]:
    """Have threads that are started meanwhile run on these processors only; on all of the process without any.

    Raises:
        UsageError: this process may not use one of them.
    """
    if not cpus:
        yield
        return
    before = os.sched_getaffinity(0)
    if missing := set(cpus) - before:
        raise UsageError(f"--cpus: this process may not run on {format_cpus(missing)}: it has {format_cpus(before)}")
    os.sched_setaffinity(0, cpus)
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
