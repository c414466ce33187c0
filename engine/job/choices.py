"""What a job chooses among: order, cache mode, engine, arrivals and path policy, with the policies' other names."""

from __future__ import annotations

from enum import StrEnum

from engine.errors import UsageError


class Access(StrEnum):
    """Order in which offsets are visited."""

    RANDOM = "random"
    SEQUENTIAL = "sequential"


class Mode(StrEnum):
    """Around the page cache or through it; with sync and dsync a write returns when it is on the medium."""

    DIRECT = "direct"
    BUFFERED = "buffered"
    SYNC = "sync"
    DSYNC = "dsync"
    DIRECT_SYNC = "direct-sync"
    DIRECT_DSYNC = "direct-dsync"

    @property
    def is_direct(self) -> bool:
        """Whether it goes around the page cache."""
        return self in {Mode.DIRECT, Mode.DIRECT_SYNC, Mode.DIRECT_DSYNC}

    @property
    def is_synchronous(self) -> bool:
        """Whether each write waits until it is on the medium."""
        return self not in {Mode.DIRECT, Mode.BUFFERED}


class Flush(StrEnum):
    """How a target is flushed: with its metadata, or only with those that its data need (fdatasync(2))."""

    FSYNC = "fsync"
    FDATASYNC = "fdatasync"


class Backend(StrEnum):
    """Which engine does the I/O; AUTO takes the best that works and names it."""

    AUTO = "auto"
    URING = "uring"
    THREADS = "threads"
    AIO = "aio"


class Arrival(StrEnum):
    """When I/Os are issued: whenever one completes (closed loop), or by a schedule of their own (open loop)."""

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


ALIASES = {"queue-length": PathPolicy.LEAST_COMMAND_LOAD}
"""Names of dm-multipath for policies."""
POLICY_NAMES = (*PathPolicy, *ALIASES)


def parse_policy(text: str) -> PathPolicy:
    """Read the name of a policy.

    Raises:
        UsageError: none of that name.
    """
    name = text.strip().lower().replace("_", "-")
    if name in ALIASES:
        return ALIASES[name]
    try:
        return PathPolicy(name)
    except ValueError:
        raise UsageError(f"{text!r} is no path policy: known are {', '.join(POLICY_NAMES)}") from None
