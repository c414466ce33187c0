"""Upper limits of a job, and what is wrong with one option."""

from __future__ import annotations

from msgspec import Struct


class Problem(Struct, frozen=True):
    """What is wrong with one option, without the option's name in front."""

    option: str
    """Option as typed on the command line, without the dashes."""
    text: str

    def __str__(self) -> str:
        return f"--{self.option}: {self.text}"


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
SECTOR_BYTES = 512
"""No disk does direct I/O in smaller units."""
