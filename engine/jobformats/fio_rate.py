"""How fast a fio job goes: rate, rate_iops and rate_process (fio(1), I/O rate)."""

from __future__ import annotations

from engine.job.shares import MIX_TOLERANCE_PERCENT
from engine.job.spec import Arrival, BlockShare
from engine.jobformats.fio_sections import Given, Option
from engine.jobformats.fio_values import Units, by_direction
from engine.jobformats.source_location import quoted

_FROM_INTENDED = (
    "rate_process=poisson: an open loop; latencies count from the moment an I/O was meant to be issued, and what finds "
    "no room is skipped and counted"
)


def take_rate(
    given: Given, units: Units, read_pct: float, blocks: tuple[tuple[BlockShare, ...], tuple[BlockShare, ...]]
) -> tuple[float | None, Arrival, list[str]]:
    """Take the I/Os per second of one clone over both directions, how they arrive, and what to warn of.

    Raises:
        UsageError: rates of reads and writes contradict their mix, or cannot be counted in I/Os.
    """
    in_ios, in_bytes, process = given.take("rate_iops"), given.take("rate"), given.take("rate_process")
    if process is not None and process.value not in ("linear", "poisson"):
        raise process.error(f"{quoted(process.value or '')} is neither linear nor poisson")
    option = in_ios or in_bytes
    limits = None if option is None else _limits(option, units, read_pct, None if in_ios else blocks)
    if in_ios and in_bytes and limits is not None:
        raise in_bytes.error("with rate_iops as well it is not driven: give one of them")
    if option is None or limits is None:
        return None, Arrival.CLOSED, []
    rate = _total(option, *limits, read_pct)
    if process is not None and process.value == "poisson":
        return rate, Arrival.POISSON, [_FROM_INTENDED]
    return rate, Arrival.CLOSED, []


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


def _total(option: Option, reads: float, writes: float, read_pct: float) -> float | None:
    """Add up both directions, which must stand in the ratio of the mix."""
    if read_pct in (0.0, 100.0):
        return (reads if read_pct else writes) or None
    total = reads + writes
    if not (reads and writes):
        raise option.error("a limit for one direction of a mix alone is not driven: give both, in the ratio of the mix")
    if abs(100 * reads / total - read_pct) > MIX_TOLERANCE_PERCENT:
        raise option.error(
            f"{reads:g} reads and {writes:g} writes per second are no mix of {read_pct:g} % reads: give both in that "
            f"ratio, as in {total * read_pct / 100:.0f},{total * (100 - read_pct) / 100:.0f}"
        )
    return total
