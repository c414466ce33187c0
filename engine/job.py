"""What to drive: the job and its knobs, as plain frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from engine.distribution import Distribution, Uniform

MAX_QUEUE_DEPTH = 4096
MAX_TARGETS = 1024
MAX_THREADS = 1000
MAX_STREAMS = 1024
MAX_BLOCK_BYTES = 64 * 1024 * 1024


class Access(StrEnum):
    """Order in which offsets are visited."""

    RANDOM = "random"
    SEQUENTIAL = "sequential"


class Mode(StrEnum):
    """Around the page cache or through it; sync and dsync write through it to the medium."""

    DIRECT = "direct"
    BUFFERED = "buffered"
    SYNC = "sync"
    DSYNC = "dsync"


class Backend(StrEnum):
    """Which engine does the I/O; AUTO takes the best that works and names it."""

    AUTO = "auto"
    URING = "uring"
    THREADS = "threads"
    AIO = "aio"


class Arrival(StrEnum):
    """When I/Os are issued: whenever one comes back (closed loop), or by a schedule of their own (open loop)."""

    CLOSED = "closed"
    CONSTANT = "constant"
    POISSON = "poisson"


@dataclass(frozen=True, slots=True)
class BlockShare:
    """One block size of a mix and its share of the I/Os."""

    block_bytes: int
    percent: float = 100.0


@dataclass(frozen=True, slots=True)
class Knobs:
    """Everything that may be turned while the load runs; one value of it describes one epoch."""

    queue_depth: int = 1
    """Outstanding I/Os kept on each target, whatever the number of threads."""
    stripe_width: int = 1
    """Over how many of the job's targets, from the first, the address space is spread."""
    blocks: tuple[BlockShare, ...] = (BlockShare(4096),)
    """Block sizes with their shares, which add up to 100."""
    read_pct: float = 100.0
    """Share of reads, 0 to 100."""
    rate_iops: float | None = None
    """Logical I/Os per second over all targets: the upper limit of a closed loop (None is unlimited), the rate of an
    open one."""
    write_blocks: tuple[BlockShare, ...] | None = None
    """Block sizes of writes; None: as `blocks`, which is of reads then as well."""
    distribution: Distribution = Uniform()  # noqa: RUF009 (frozen, and without fields)
    """Where random I/Os go."""
    write_distribution: Distribution | None = None
    """Where random writes go; None: as `distribution`."""
    mode: Mode = Mode.DIRECT
    """How data get past the page cache."""
    threads: int = 1
    """Worker threads of the uring engine; the others take as many as there are I/Os outstanding."""
    fsync_every: int | None = None
    """Writes of a target after which it is flushed; None is never."""

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


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """One target by the name the operator gave it; None asks for a scratch file."""

    path: str | None = None


@dataclass(frozen=True, slots=True)
class JobSpec:
    """A whole job: targets, fixed settings, and the knobs it starts with."""

    targets: tuple[TargetSpec, ...] = (TargetSpec(),)
    knobs: Knobs = field(default_factory=Knobs)
    access: Access = Access.RANDOM
    backend: Backend = Backend.AUTO
    streams: int = 1
    """Sequential streams on each target, each in a slice of its own, that take turns."""
    stripe_unit_bytes: int = 64 * 1024
    size_bytes: int | None = None
    """Bytes used of each target from its start; None is all of it (scratch files: the default size)."""
    runtime_s: float | None = None
    seed: int = 1
    arrival: Arrival = Arrival.CLOSED
    poll: bool = False
    """Whether the uring engine stays awake while I/Os are outstanding: lowest latency for a processor per thread."""
    name: str = "job"

    @property
    def stays_awake(self) -> bool:
        """Whether the uring engine uses a processor on purpose, so that its CPU time says nothing of its speed."""
        return self.poll or self.arrival is not Arrival.CLOSED


@dataclass(frozen=True, slots=True)
class Permissions:
    """What the operator allowed beyond reading; every entry is a path exactly as given."""

    allow_write: frozenset[str] = frozenset()
    destroy_data: bool = False
