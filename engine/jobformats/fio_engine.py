"""Who does the I/O of a fio job, how deep, and how data get past the page cache."""

from __future__ import annotations

from dataclasses import dataclass

from engine.job.spec import MAX_QUEUE_DEPTH, MAX_THREADS, Backend, Mode
from engine.jobformats.fio_sections import Given, Option
from engine.jobformats.fio_values import Units, switch
from engine.jobformats.source_location import quoted

_ONE_AT_A_TIME = ("sync", "psync", "vsync", "pvsync", "pvsync2")
_QUEUEING = {"io_uring": Backend.URING, "libaio": Backend.AUTO, "posixaio": Backend.AUTO}
_SYNC_MODES = {"none": None, "0": None, "sync": Mode.SYNC, "1": Mode.SYNC, "dsync": Mode.DSYNC}


@dataclass(frozen=True, slots=True)
class Workers:
    """The processes of a job."""

    backend: Backend
    jobs: int
    """Clones of it."""
    depth: int
    """What each keeps outstanding, over all its files."""
    notes: tuple[str, ...] = ()


def take_workers(given: Given, units: Units) -> Workers:
    """Take the engine, the clones and their depth; an engine that waits for each I/O has a depth of 1 (fio(1)).

    Raises:
        UsageError: the engine is none that can be stood in for, or a number is out of range.
    """
    engine = given.take("ioengine")
    name = "psync" if engine is None else engine.text
    jobs = _count(given.take("numjobs"), units, MAX_THREADS)
    depth_option = given.take("iodepth")
    depth = _count(depth_option, units, MAX_QUEUE_DEPTH)
    if name in _ONE_AT_A_TIME:
        note = f"iodepth={depth} is without effect with ioengine={name}, as in fio: each of numjobs has one I/O"
        return Workers(Backend.THREADS, jobs, 1, (note,) if depth > 1 else ())
    if engine is not None and name not in _QUEUEING:
        known = ", ".join((*_QUEUEING, *_ONE_AT_A_TIME))
        raise engine.error(f"{quoted(name)} is not driven: known are {known}")
    backend = _QUEUEING[name]
    note = f"ioengine={name}: io_uring, or threads where it is refused, keeps the same depth"
    return Workers(backend, jobs, depth, (note,) if backend is Backend.AUTO else ())


def _count(option: Option | None, units: Units, most: int) -> int:
    if option is None:
        return 1
    count = units.integer(option, most=most)
    if count < 1:
        raise option.error(f"{count} is out of range: 1 to {most}")
    return count


def take_mode(given: Given, *, writes: bool) -> Mode:
    """Take direct, buffered and sync; fio is buffered unless told otherwise.

    Raises:
        UsageError: writes are to be direct and synchronous at once.
    """
    direct, buffered = given.take("direct"), given.take("buffered")
    is_direct = switch(direct) if direct is not None else not switch(buffered, default=True)
    sync = given.take("sync")
    if sync is not None and sync.value not in _SYNC_MODES:
        raise sync.error(f"{quoted(sync.value or '')} is none of {', '.join(_SYNC_MODES)}")
    mode = _SYNC_MODES["none" if sync is None else sync.text]
    if mode is None or not writes:
        return Mode.DIRECT if is_direct else Mode.BUFFERED
    if is_direct:
        assert sync is not None
        raise sync.error("direct=1 with synchronous writes is not driven: give direct=0, or fsync=1 instead of sync")
    return mode
