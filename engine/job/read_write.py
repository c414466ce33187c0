"""Words of --rw: the order of offsets and the share of reads in one."""

from __future__ import annotations

from engine.errors import UsageError
from engine.job.spec import Access

READ_WRITE: dict[str, tuple[Access, float]] = {
    "read": (Access.SEQUENTIAL, 100.0),
    "write": (Access.SEQUENTIAL, 0.0),
    "rw": (Access.SEQUENTIAL, 50.0),
    "randread": (Access.RANDOM, 100.0),
    "randwrite": (Access.RANDOM, 0.0),
    "randrw": (Access.RANDOM, 50.0),
}
"""Words of --rw: the order of offsets, and the share of reads that goes with it."""

_MIXES = ("rw", "randrw")


def access_and_mix(rw: str | None, read_pct: float | None) -> tuple[Access, float]:
    """Make order and share of reads of --rw and --read-pct; without both it is random reads.

    Raises:
        UsageError: the word is unknown, or it says read or write and the share says otherwise.
    """
    if rw is None:
        return Access.RANDOM, 100.0 if read_pct is None else read_pct
    if rw not in READ_WRITE:
        raise UsageError(f"--rw: {rw!r} is none of {', '.join(READ_WRITE)}")
    access, share = READ_WRITE[rw]
    if read_pct is None or read_pct == share:
        return access, share
    if rw not in _MIXES:
        mix = "rw" if access is Access.SEQUENTIAL else "randrw"
        raise UsageError(f"--rw {rw} is {share:g} % reads, --read-pct says {read_pct:g}: use --rw {mix} with it")
    return access, read_pct


def rw_word(access: Access, read_pct: float) -> str:
    """Return the value of --rw for an order and a share of reads; the mixed ones need the share as well."""
    exact = [word for word, pair in READ_WRITE.items() if pair == (access, read_pct) and word not in _MIXES]
    return exact[0] if exact else "rw" if access is Access.SEQUENTIAL else "randrw"
