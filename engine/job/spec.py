"""What to drive: the job with its targets and the knobs it starts with, as plain frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import Struct

from engine.job.choices import Access, Arrival, Backend, Flush, Mode, PathPolicy
from engine.job.io_priority import IoPriority
from engine.job.knobs import Knobs
from engine.job.limits import (
    MAX_ARRIVALS_PER_S,
    MAX_BLOCK_BYTES,
    MAX_PATHS,
    MAX_QUEUE_DEPTH,
    MAX_STREAMS,
    MAX_TARGETS,
    MAX_THREADS,
    MAX_WEIGHT,
)
from engine.job.rate_floor import RateFloor
from engine.job.sizes import BlockShare

__all__ = [
    "DEFAULT_GIVE_UP_S",
    "DEFAULT_STEADY_ROUND_S",
    "MAX_ARRIVALS_PER_S",
    "MAX_BLOCK_BYTES",
    "MAX_PATHS",
    "MAX_QUEUE_DEPTH",
    "MAX_STREAMS",
    "MAX_TARGETS",
    "MAX_THREADS",
    "MAX_WEIGHT",
    "Access",
    "Arrival",
    "Backend",
    "BlockShare",
    "Flush",
    "JobSpec",
    "Knobs",
    "Mode",
    "PathPolicy",
    "PathSpec",
    "Permissions",
    "TargetIdentity",
    "TargetSpec",
]

DEFAULT_GIVE_UP_S = 30.0
DEFAULT_STEADY_ROUND_S = 60.0


class PathSpec(Struct, frozen=True):
    """One device node of a LUN that has several."""

    path: str
    weight: int = 1
    """service-time: its throughput against the others; weighted-round-robin: I/Os in a row. 0 to 100."""
    preferred: bool = False
    """The path of the policy preferred-path; without one it is the first."""


class TargetSpec(Struct, frozen=True):
    """One target by the name the operator gave it; None is a scratch file."""

    path: str | None = None
    """Path; the first of several."""
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
    """Sequential streams on each target that take turns."""
    stream_step_bytes: int | None = None
    """Distance of the starts of neighbouring streams, which have one length and may overlap; None: slices."""
    jump_bytes: int = 0
    """Left out after each block in sequence, or gone back if negative."""
    separate: bool = False
    """Whether reads and writes in sequence each have a position of their own, and not one together."""
    stripe_unit_bytes: int = 64 * 1024
    copies: int = 1
    """How many neighbouring targets hold the same data: writes go to all of them, reads to one by the policy."""
    total_queue_depth: bool = False
    """Whether the queue depth is for all targets together, shared out evenly, and not for each.

    Below their number it is one queue over all of them."""
    size_bytes: int | None = None
    """Bytes used of each target from the offset; None is all of it (scratch files: the default size)."""
    offset_bytes: int = 0
    """Offset at which the bytes used of each target begin."""
    align_bytes: int | None = None
    """What random offsets are multiples of; None: each of its own block."""
    io_bytes: int | None = None
    """Bytes to transfer on each target, after which the load ends."""
    loops: int | None = None
    """Times to transfer `io_bytes`, or the bytes used where that is None; with both None there is no such end."""
    runtime_s: float | None = None
    ramp_s: float = 0.0
    """How much of the runtime, and of the time after each turn, is not measured."""
    think_s: float = 0.0
    """How long each thread, which has one I/O outstanding, pauses after every `think_every` I/Os."""
    think_every: int = 1
    until_steady: bool = False
    """Whether the load ends as soon as it is steady (engine/statistics/steady_state.py); the runtime is the limit."""
    steady_round_s: float = DEFAULT_STEADY_ROUND_S
    """Length of a round of that rule."""
    response_limits_s: tuple[float, ...] = ()
    """The share of the I/Os within each is reported, ascending."""
    response_edges_s: tuple[float, ...] = ()
    """Edges of a histogram of response times that is reported, ascending."""
    priorities: tuple[IoPriority, ...] = ()
    """I/O priorities of shares of the I/Os; the first that fits counts, other I/Os have that of the process."""
    rate_min: RateFloor | None = None
    """The load is ended as failed when its rate falls below."""
    give_up_s: float = DEFAULT_GIVE_UP_S
    """How long the end of the run waits for I/Os that do not complete."""
    seed: int = 1
    arrival: Arrival = Arrival.CLOSED
    poll: bool = False
    """Whether the uring engine stays awake while I/Os are outstanding: lowest latency for a processor per thread."""
    verify: bool = False
    """Whether every write says what it is, and reads and a final pass check it (engine/verify)."""
    name: str = "job"
    cpus: tuple[int, ...] = ()
    """Processors that the threads that do I/O run on; empty: all that the process may use."""

    @property
    def has_end(self) -> bool:
        """Whether it ends by itself."""
        return self.runtime_s is not None or self.ends_by_bytes

    @property
    def ends_by_bytes(self) -> bool:
        """Whether it ends by what was transferred."""
        return self.io_bytes is not None or self.loops is not None

    @property
    def stays_awake(self) -> bool:
        """Whether the uring engine uses a processor on purpose, so that its CPU time says nothing of its speed."""
        return self.poll or self.arrival is not Arrival.CLOSED


class TargetIdentity(Struct, frozen=True):
    """A device or file, whatever name leads to it: what a permission is given for."""

    device: int
    """Number of the block device, or of what the file is stored on."""
    inode: int = 0
    """Inode of a file; 0 for a device."""
    sequence: int | None = None
    """`diskseq` of the disk."""
    wwid: str = ""
    size_bytes: int = 0
    """Size of a device; 0 for a file, which may grow."""


class Permissions(Struct, frozen=True):
    """What the operator allowed beyond reading; every entry is a path exactly as given."""

    allow_write: frozenset[str] = frozenset()
    destroy_data: bool = False
    given: Mapping[str, TargetIdentity | None] = {}
    """What the names in `allow_write` led to when they were allowed; None: to nothing, it is made. A name that is
    missing is of whatever it leads to."""
    typed: frozenset[str] = frozenset()
    """Names of targets that the operator gave, not a job file: a file of that name may be made."""
    make_in: Path | None = None
    """The scratch folder, unless a job file names it: files may be made there under any name."""
