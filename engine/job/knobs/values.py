"""The knobs. A field is the whole description of one; see CONTRIBUTING.md for how to add another."""

from __future__ import annotations

import math
from dataclasses import dataclass

from engine.job.choices import POLICY_NAMES, Flush, Mode, PathPolicy, parse_policy
from engine.job.distribution import Distribution, Uniform
from engine.job.distribution_text import format_distribution
from engine.job.knobs.kinds import BlockSizes, Number, Offsets, OneOf, WholeNumber
from engine.job.knobs.knob import FioNumber, FormLine, Knob, Row, knob
from engine.job.knobs.steps import (
    DISTRIBUTIONS,
    DOUBLED_THREADS,
    HALF_READ_SHARES,
    QUEUE_DEPTHS,
    READ_SHARES,
    THREADS,
    along,
    around,
    blocks_by_factor,
    blocks_by_four,
    blocks_by_sectors,
    by_one,
    depth_by_factor,
    next_and_previous,
    rate_by_ten,
    rate_by_tenth,
    rate_from_load,
    sized,
    up_and_down,
    width_by_columns,
    width_to_end,
)
from engine.job.limits import MAX_FSYNC_EVERY, MAX_QUEUE_DEPTH, MAX_TARGETS, MAX_THREADS
from engine.job.sizes import BlockShare, format_blocks, format_number
from engine.text import with_prefix

AS_READS = "as of reads"
"""The word for a knob of writes that is not set."""


def _sizes(knobs: Knobs) -> str:
    own = "" if knobs.write_blocks is None else f" (writes {format_blocks(knobs.write_blocks)})"
    return format_blocks(knobs.blocks) + own


def _short_sizes(knobs: Knobs, _targets: int) -> str:
    own = "" if knobs.write_blocks is None else f"/{format_blocks(knobs.write_blocks)}"
    return format_blocks(knobs.blocks) + own


def _mix(knobs: Knobs) -> str:
    return {100.0: "read", 0.0: "write"}.get(knobs.read_pct, f"{knobs.read_pct:g} % read")


def _offsets(knobs: Knobs) -> str:
    if knobs.write_distribution is not None:
        return f"{format_distribution(knobs.distribution)} (writes {format_distribution(knobs.write_distribution)})"
    return "" if knobs.distribution == Uniform() else format_distribution(knobs.distribution)


@dataclass(frozen=True, slots=True)
class Knobs:
    """Everything that may be turned while the load runs; one value describes one epoch."""

    queue_depth: int = knob(
        1,
        Knob(
            key="qd",
            position=30,
            name="queue depth",
            kind=WholeNumber(1, MAX_QUEUE_DEPTH, "{} to {} per target"),
            help="Outstanding I/Os of each target. [1]",
            metavar="N",
            row=Row(
                1,
                "Queue depth",
                "Depth",
                *up_and_down(
                    "queue_depth",
                    ("Queue depth up", "Queue depth down"),
                    ("plus,equals_sign", "minus"),
                    sized(
                        along("queue_depth", QUEUE_DEPTHS),
                        fine=by_one("queue_depth", 1, MAX_QUEUE_DEPTH),
                        coarse=depth_by_factor,
                    ),
                ),
                more=up_and_down(
                    "queue_depth",
                    ("Queue depth doubled", "Queue depth halved"),
                    ("right_square_bracket", "left_square_bracket"),
                    depth_by_factor,
                    ("double", "halve"),
                ),
                hint="/2 x2",
            ),
            form=FormLine(after="targets", hint=f"outstanding I/Os, 1 to {MAX_QUEUE_DEPTH}"),
            phrase=lambda knobs: f"QD {knobs.queue_depth}",
            fio=("iodepth", "numjobs"),
        ),
    )
    """Outstanding I/Os of each target, whatever the number of threads."""
    stripe_width: int = knob(
        1,
        Knob(
            key="stripe_width",
            position=40,
            name="stripe width",
            kind=WholeNumber(1, MAX_TARGETS),
            help="Over how many targets the load is spread. [all given]",
            metavar="N",
            row=Row(
                2,
                "Stripe width",
                "Width",
                *up_and_down(
                    "stripe_width",
                    ("Stripe width up", "Stripe width down"),
                    ("w", "W"),
                    sized(width_by_columns, coarse=width_to_end),
                ),
                shown=lambda knobs, targets: f"{knobs.stripe_width} of {targets}",
            ),
            phrase=lambda knobs: f"stripe width {knobs.stripe_width}",
            fio=("filename", "nrfiles"),
        ),
    )
    """Over how many of the job's targets, from the first, the address space is spread."""
    blocks: tuple[BlockShare, ...] = knob(
        (BlockShare(4096),),
        Knob(
            key="bs",
            position=10,
            name="block size",
            kind=BlockSizes(),
            help="Block size, or a mix: 4k:60,16k:40. [4k]",
            metavar="SIZE[:PCT,...]",
            row=Row(
                3,
                "Block size",
                "Block",
                *up_and_down(
                    "block_size",
                    ("Block size doubled", "Block size halved"),
                    ("b", "B"),
                    sized(blocks_by_factor, fine=blocks_by_sectors, coarse=blocks_by_four),
                ),
                shown=_short_sizes,
            ),
            form=FormLine(after="targets", hint="e.g. 4k, or a mix: 4k:60,16k:40"),
            phrase=_sizes,
            fio=("bs", "blocksize", "bsrange", "blocksize_range", "bssplit"),
        ),
    )
    """Block sizes with their shares, which add up to 100."""
    read_pct: float = knob(
        100.0,
        Knob(
            key="read_pct",
            position=20,
            name="read share %",
            kind=Number(0, 100, "0 to 100"),
            help="Share of reads, 0 to 100.",
            metavar="PCT",
            row=Row(
                4,
                "Reads",
                "Reads",
                *up_and_down(
                    "read_share",
                    ("Read share up 10 %", "Read share down 10 %: the rest is written"),
                    ("r", "R"),
                    sized(
                        along("read_pct", READ_SHARES),
                        fine=by_one("read_pct", 0, 100),
                        coarse=along("read_pct", HALF_READ_SHARES),
                    ),
                ),
                shown=lambda knobs, _targets: f"{knobs.read_pct:g} %",
            ),
            form=FormLine(after="targets", hint="0 to 100; the rest is written"),
            phrase=_mix,
            fio=("rwmixread", "rwmixwrite"),
        ),
    )
    """Share of reads, 0 to 100."""
    rate_iops: float | None = knob(
        None,
        Knob(
            key="rate",
            position=80,
            name="rate limit",
            kind=Number(0, math.inf, "above 0 I/Os per second", above=True),
            help="At most so many I/Os per second over all targets.",
            metavar="IOPS",
            unset="unlimited",
            null_in_events=True,
            row=Row(
                5,
                "Rate limit",
                "Rate",
                *up_and_down(
                    "rate",
                    ("Rate limit up, then off", "Rate limit down"),
                    ("t", "T"),
                    sized(rate_from_load, fine=rate_by_tenth, coarse=rate_by_ten),
                ),
                shown=lambda knobs, _targets: "none" if knobs.rate_iops is None else f"{knobs.rate_iops:,.0f}/s",
                brief=lambda knobs: "".join((*with_prefix(knobs.rate_iops or 0.0), "/s")),
            ),
            form=FormLine(after="targets", hint="I/Os/s over all targets; empty: unlimited"),
            phrase=lambda knobs: "" if knobs.rate_iops is None else f"at most {format_number(knobs.rate_iops)} IOPS",
            fio=("rate", "rate_iops", "rate_process"),
        ),
    )
    """Logical I/Os per second over all targets: the upper limit of a closed loop (None is unlimited), the rate of an
    open one."""
    write_blocks: tuple[BlockShare, ...] | None = knob(
        None,
        Knob(
            key="write_bs",
            position=11,
            name="block size of writes",
            kind=BlockSizes(),
            help="Block sizes of writes. [as --bs]",
            metavar="SIZE[:PCT,...]",
            unset=AS_READS,
            fio=(),
        ),
    )
    """Block sizes of writes; None: as `blocks`, which is of reads then as well."""
    distribution: Distribution = knob(
        Uniform(),
        Knob(
            key="distribution",
            position=50,
            name="distribution",
            kind=Offsets(),
            help="Where random I/Os go: uniform, permutation (every block once), zipf:1.1, pareto:0.2, "
            "normal:10[:50], hot:90/10, locality:50,30,20 (equal slices), zones:60/10,40/90. [uniform]",
            metavar="NAME[:...]",
            row=Row(
                8,
                "Distribution",
                "Offsets",
                *next_and_previous(
                    "distribution",
                    ("Next distribution: even, skewed, hot and cold, every block once", "The distribution before"),
                    ("d", "D"),
                    around("distribution", DISTRIBUTIONS),
                ),
            ),
            form=FormLine(after="access", hint="uniform, permutation, zipf:1.1, hot:90/10"),
            phrase=_offsets,
            fio=("random_distribution", "norandommap"),
        ),
    )
    """Distribution of the offsets of random I/Os."""
    write_distribution: Distribution | None = knob(
        None,
        Knob(
            key="write_distribution",
            position=51,
            name="distribution of writes",
            kind=Offsets(),
            help="Where random writes go. [as --distribution]",
            metavar="NAME[:...]",
            unset=AS_READS,
            fio=(),
        ),
    )
    """Distribution of the offsets of random writes; None: as `distribution`."""
    mode: Mode = knob(
        Mode.DIRECT,
        Knob(
            key="mode",
            position=65,
            name="mode",
            kind=OneOf(Mode),
            help="How targets are opened. [direct]",
            row=Row(
                6,
                "Mode",
                "Mode",
                *next_and_previous(
                    "mode",
                    ("Next mode: direct, buffered, ...", "The mode before"),
                    ("m", "M"),
                    around("mode", tuple(Mode)),
                ),
            ),
            form=FormLine(after="access", hint="how targets are opened"),
            fio=("direct", "buffered", "sync"),
        ),
    )
    """How data get past the page cache."""
    threads: int = knob(
        1,
        Knob(
            key="threads",
            position=60,
            name="threads",
            kind=WholeNumber(1, MAX_THREADS),
            help="Worker threads of the engine. [1]",
            metavar="N",
            row=Row(
                7,
                "Threads",
                "Threads",
                *up_and_down(
                    "threads",
                    ("More threads", "Fewer threads"),
                    ("n", "N"),
                    sized(
                        along("threads", THREADS),
                        fine=by_one("threads", 1, MAX_THREADS),
                        coarse=along("threads", DOUBLED_THREADS),
                    ),
                ),
            ),
            form=FormLine(after="streams", hint=f"1 to {MAX_THREADS}"),
            phrase=lambda knobs: f"{knobs.threads} threads" if knobs.threads > 1 else "",
            fio=(),
        ),
    )
    """Worker threads of the uring engine; the others take as many as there are I/Os outstanding."""
    fsync_every: int | None = knob(
        None,
        Knob(
            key="fsync_every",
            position=70,
            name="writes per fsync",
            kind=WholeNumber(1, MAX_FSYNC_EVERY, "after {} to {} writes"),
            help="Flush a target after every N writes. [never]",
            metavar="N",
            unset="never",
            phrase=lambda knobs: f"fsync every {knobs.fsync_every} writes" if knobs.fsync_every else "",
            fio=("fsync", "fdatasync"),
            fio_number=FioNumber(
                {"fsync": {"flush": Flush.FSYNC}, "fdatasync": {"flush": Flush.FDATASYNC}}, of_writes=True
            ),
        ),
    )
    """Writes of a target after which it is flushed; None is never."""
    policy: PathPolicy = knob(
        PathPolicy.ROUND_ROBIN,
        Knob(
            key="policy",
            position=90,
            name="path policy",
            kind=OneOf(PathPolicy, parse_policy, 'the name of a path policy such as "round-robin"'),
            help=f"Which path, or copy, an I/O takes: {', '.join(POLICY_NAMES)}. [round-robin]",
            metavar="NAME",
            row=Row(
                9,
                "Path policy",
                "Path policy",
                *next_and_previous(
                    "policy",
                    ("Next path policy", "Previous path policy"),
                    ("p", "P"),
                    around("policy", tuple(PathPolicy)),
                ),
                width=22,
                brief=lambda knobs: knobs.policy.removesuffix("-time"),
                of_paths=True,
            ),
            form=FormLine(after="mirror", hint="which path or copy an I/O takes"),
            fio=(),
        ),
    )
    """How one of several paths, or a copy of a mirror, is chosen."""
    flush: Flush = knob(
        Flush.FSYNC,
        Knob(
            key="flush",
            position=71,
            name="flush",
            kind=OneOf(Flush),
            help="What --fsync-every issues: fdatasync leaves out metadata that the data do not need. [fsync]",
            phrase=lambda knobs: knobs.flush.value if knobs.fsync_every and knobs.flush is not Flush.FSYNC else "",
            fio=(),
        ),
    )
    """What flushes a target after `fsync_every` writes."""

    @property
    def drawn_write_blocks(self) -> tuple[BlockShare, ...]:
        """Block sizes of writes, whether of their own or not."""
        return self.blocks if self.write_blocks is None else self.write_blocks

    @property
    def block_sizes(self) -> tuple[int, ...]:
        """All sizes that this share of reads ever draws."""
        reads = self.blocks if self.read_pct > 0 else ()
        writes = self.drawn_write_blocks if self.read_pct < 100 else ()
        return tuple(dict.fromkeys(share.block_bytes for share in (*reads, *writes)))
