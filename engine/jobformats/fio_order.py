"""Order, direction and seed of a fio job (fio(1), I/O type)."""

from __future__ import annotations

from engine.job.read_write import READ_WRITE
from engine.job.spec import Access, JobSpec
from engine.job.validate import MAX_SEED
from engine.jobformats.fio_sections import Given, Option
from engine.jobformats.fio_values import Units
from engine.jobformats.source_location import quoted


def take_order(given: Given, units: Units) -> tuple[Access, float]:
    """Take the order of offsets and the share of reads; without them fio reads in sequence.

    Raises:
        UsageError: the job trims or jumps, or shares are no percentages.
    """
    option = given.take("rw", "readwrite")
    word = "read" if option is None else option.text
    word = "rw" if word == "readwrite" else word
    if option is not None and word not in READ_WRITE:
        raise option.error(
            f"{quoted(word)} is not driven: reads, writes and their mixes are, without trims and without an offset "
            "after a colon"
        )
    access, share = READ_WRITE[word]
    mixed = _share_of_reads(given.take("rwmixread"), given.take("rwmixwrite"), units)
    return access, mixed if word in ("rw", "randrw") and mixed is not None else share


def _share_of_reads(reads: Option | None, writes: Option | None, units: Units) -> float | None:
    if writes is not None and (reads is None or writes.location.line > reads.location.line):
        return 100.0 - units.integer(writes, most=100)
    return None if reads is None else float(units.integer(reads, most=100))


def take_seed(given: Given, units: Units) -> int:
    """Take the seed; without one it is the same every time, as in fio.

    Raises:
        UsageError: it is out of range.
    """
    option = given.take("randseed")
    return JobSpec().seed if option is None else units.integer(option, most=MAX_SEED)
