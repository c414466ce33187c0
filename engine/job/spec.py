"""What to drive: the job and its knobs, as plain frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from engine.job.distribution import Distribution, Uniform

MAX_QUEUE_DEPTH = 4096
MAX_TARGETS = 1024
MAX_THREADS = 1000
MAX_STREAMS = 1024
MAX_FSYNC_EVERY = 10**9
MAX_BLOCK_BYTES = 64 * 1024 * 1024
MAX_PATHS = 32
MAX_WEIGHT = 100
MAX_ARRIVALS_PER_S = 10_000_000
"""More than any engine issues; each of them is drawn, even if only to be skipped."""
DEFAULT_GIVE_UP_S = 30.0


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


class PathPolicy(StrEnum):
    """Which path to a LUN an I/O takes, and which copy of a mirror is read; the rules are those of the kernels.

    engine/native/src/load/policy has a file for each.
    """

    ROUND_ROBIN = "round-robin"
    LEAST_COMMAND_LOAD = "least-command-load"
    SERVICE_TIME = "service-time"
    HISTORICAL_SERVICE_TIME = "historical-service-time"
    CELL_LOCAL_ROUND_ROBIN = "cell-local-round-robin"
    PATH_LOCKDOWN = "path-lockdown"
    PREFERRED_PATH = "preferred-path"
    WEIGHTED_ROUND_ROBIN = "weighted-round-robin"


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
    policy: PathPolicy = PathPolicy.ROUND_ROBIN
    """Which of several paths, and which copy of a mirror."""

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
class PathSpec:
    """One device node of a LUN that has several."""

    path: str
    weight: int = 1
    """service-time: its throughput against the others; weighted-round-robin: I/Os in a row. 0 to 100."""
    preferred: bool = False
    """The path of the policy preferred-path; without one it is the first."""


@dataclass(frozen=True, slots=True)
class TargetSpec:
    """One target by the name the operator gave it; None asks for a scratch file."""

    path: str | None = None
    """With several paths, the first of them."""
    paths: tuple[PathSpec, ...] = ()
    """All device nodes of a LUN that is driven over more than one; empty for a plain target."""

    @classmethod
    def lun(cls, paths: tuple[PathSpec, ...]) -> TargetSpec:
        """Make a target of all the paths to one LUN."""
        return cls(paths[0].path, paths)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Every name by which it is reached; none for a scratch file."""
        if self.paths:
            return tuple(path.path for path in self.paths)
        return () if self.path is None else (self.path,)


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
    copies: int = 1
    """How many neighbouring targets hold the same data: writes go to all of them, reads to one by the policy."""
    total_queue_depth: bool = False
    """Whether the queue depth is that of all targets together, shared out evenly, and not of each."""
    size_bytes: int | None = None
    """Bytes used of each target from its start; None is all of it (scratch files: the default size)."""
    runtime_s: float | None = None
    give_up_s: float = DEFAULT_GIVE_UP_S
    """How long the end waits for I/Os that do not come back."""
    seed: int = 1
    arrival: Arrival = Arrival.CLOSED
    poll: bool = False
    """Whether the uring engine stays awake while I/Os are outstanding: lowest latency for a processor per thread."""
    verify: bool = False
    """Whether every write says what it is, and reads and a final pass check it (engine/verify)."""
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
