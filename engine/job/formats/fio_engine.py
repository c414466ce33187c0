"""Engine, queue depth and page cache mode of a fio job."""

from __future__ import annotations

from msgspec import Struct

from engine.job.formats.fio_sections import Given, Option
from engine.job.formats.fio_values import Units, by_direction, seconds, switch
from engine.job.formats.text_file import quoted
from engine.job.rate_floor import CYCLE_S, RateFloor
from engine.job.sizes import MIX_TOLERANCE_PERCENT
from engine.job.spec import MAX_QUEUE_DEPTH, MAX_THREADS, Arrival, Backend, BlockShare, Mode
from engine.job.validate import MAX_LOOPS
from engine.replacing import replace

_FROM_INTENDED = (
    "rate_process=poisson: an open loop; latencies count from the moment an I/O was meant to be issued, and what finds "
    "no free slot is skipped and counted"
)


class Rate(Struct, frozen=True):
    """How fast one clone goes."""

    iops: float | None
    """Rate of both directions together; None: as fast as it can."""
    read_pct: float
    arrival: Arrival = Arrival.CLOSED
    notes: tuple[str, ...] = ()


def take_rate(
    given: Given, units: Units, read_pct: float, blocks: tuple[tuple[BlockShare, ...], tuple[BlockShare, ...]]
) -> Rate:
    """Take the I/Os per second of one clone, how they arrive, and the share of reads that they make.

    Raises:
        UsageError: one direction of a mix has no rate, or rates cannot be counted in I/Os.
    """
    in_ios, in_bytes, process = given.take("rate_iops"), given.take("rate"), given.take("rate_process")
    if process is not None and process.value not in ("linear", "poisson"):
        raise process.error(f"{quoted(process.value or '')} is neither linear nor poisson")
    option = in_ios or in_bytes
    limits = None if option is None else _limits(option, units, read_pct, None if in_ios else blocks)
    if in_ios and in_bytes and limits is not None:
        raise in_bytes.error("with rate_iops as well it is not driven: give one of them")
    if option is None or limits is None:
        return Rate(None, read_pct)
    rate = _with_rates(option, *limits, read_pct)
    if process is not None and process.value == "poisson":
        return replace(rate, arrival=Arrival.POISSON, notes=(*rate.notes, _FROM_INTENDED))
    return rate


def take_floor(given: Given, units: Units, workers: Workers, read_pct: float) -> RateFloor | None:
    """Take the least rate, below which fio ends the job with an error.

    Raises:
        UsageError: it is judged for each direction or clone by itself.
    """
    in_bytes, in_ios = given.take("rate_min", "ratemin"), given.take("rate_iops_min")
    cycle = given.take("ratecycle", "rate_cycle")
    options = [option for option in (in_bytes, in_ios) if option is not None and option.text.strip("0,")]
    if not options:
        return None
    option = options[0]
    if len(options) > 1:
        raise option.error("with rate_iops_min as well it is not driven: give one of them")
    if workers.jobs > 1:
        raise option.error("fio judges each of numjobs by itself, which is not driven: use numjobs=1")
    if 0 < read_pct < 100:
        raise option.error("fio judges reads and writes each by themselves, which is not driven for a mix: take it out")
    reads, writes = by_direction(option.text)
    text = reads if read_pct else writes
    per_s = units.integer(option, text) if text else 0
    cycle_s = CYCLE_S if cycle is None else units.integer(cycle) / 1000
    return RateFloor(float(per_s), option is in_bytes, cycle_s) if per_s else None


def _limits(
    option: Option,
    units: Units,
    read_pct: float,
    blocks: tuple[tuple[BlockShare, ...], tuple[BlockShare, ...]] | None,
) -> tuple[float, float] | None:
    """I/Os per second of reads and writes; 0 where there is no limit, None where neither has one."""
    texts = by_direction(option.text)
    values = [float(units.integer(option, text)) if text else 0.0 for text in texts]
    if blocks is not None:
        used = [sizes for sizes, share in zip(blocks, (read_pct, 100 - read_pct), strict=True) if share > 0]
        if any(len(sizes) > 1 for sizes in used):
            raise option.error("bytes per second with several block sizes are not driven: give rate_iops")
        values = [value / sizes[0].block_bytes for value, sizes in zip(values, blocks, strict=True)]
    return (values[0], values[1]) if any(values) else None


def _with_rates(option: Option, reads: float, writes: float, read_pct: float) -> Rate:
    """Add up both directions; as each has its rate in fio, they and not rwmixread are the mix."""
    if read_pct in (0.0, 100.0):
        return Rate((reads if read_pct else writes) or None, read_pct)
    total = reads + writes
    if not (reads and writes):
        raise option.error("a limit for one direction of a mix alone is not driven: give both")
    by_rate = 100 * reads / total
    if abs(by_rate - read_pct) <= MIX_TOLERANCE_PERCENT:
        return Rate(total, read_pct)
    note = f"{option.name}: {by_rate:.4g} % reads, as the rates make it and not rwmixread, while the target keeps up"
    return Rate(total, by_rate, notes=(note,))


_ONE_AT_A_TIME = ("sync", "psync", "vsync", "pvsync", "pvsync2")
_QUEUEING = {"io_uring": Backend.URING, "libaio": Backend.AUTO, "posixaio": Backend.AUTO}
_SYNC_MODES = {"none": None, "0": None, "sync": Mode.SYNC, "1": Mode.SYNC, "dsync": Mode.DSYNC}


_DIRECT = {Mode.SYNC: Mode.DIRECT_SYNC, Mode.DSYNC: Mode.DIRECT_DSYNC}


class Workers(Struct, frozen=True):
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


def take_thinking(given: Given, units: Units, workers: Workers) -> tuple[float, int]:
    """Take thinktime, in seconds, and after how many I/Os of a clone it comes.

    Raises:
        UsageError: clones have more than one I/O outstanding, for which fio first waits.
    """
    option, blocks = given.take("thinktime"), given.take("thinktime_blocks")
    kind = given.take("thinktime_blocks_type")
    think_s = 0.0 if option is None else seconds(option, "us")
    if option is None or not think_s:
        return 0.0, 1
    if workers.depth > 1:
        raise option.error("with iodepth above 1 it is not driven: use iodepth=1 with numjobs, or take it out")
    if kind is not None and kind.value not in ("complete", "issue"):
        raise kind.error(f"{quoted(kind.value or '')} is neither complete nor issue")
    return think_s, _count(blocks, units, MAX_LOOPS)


def _count(option: Option | None, units: Units, most: int) -> int:
    if option is None:
        return 1
    count = units.integer(option, most=most)
    if count < 1:
        raise option.error(f"{count} is out of range: 1 to {most}")
    return count


def take_mode(given: Given, *, writes: bool) -> Mode:
    """Take direct, buffered and sync; fio is buffered by default.

    Raises:
        UsageError: a word is unknown.
    """
    direct, buffered = given.take("direct"), given.take("buffered")
    is_direct = switch(direct) if direct is not None else not switch(buffered, default=True)
    sync = given.take("sync")
    if sync is not None and sync.value not in _SYNC_MODES:
        raise sync.error(f"{quoted(sync.value or '')} is none of {', '.join(_SYNC_MODES)}")
    mode = _SYNC_MODES["none" if sync is None else sync.text]
    if mode is None or not writes:
        return Mode.DIRECT if is_direct else Mode.BUFFERED
    return _DIRECT[mode] if is_direct else mode
