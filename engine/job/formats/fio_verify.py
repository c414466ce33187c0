"""Verification of what a fio job writes: driven as --verify, whatever the checksum (fio(1), Verification)."""

from __future__ import annotations

from engine.job.formats.fio_sections import Given
from engine.job.formats.fio_values import switch

_BACKLOG = "verify_backlog: fio reads back while it writes, here that begins after the last write and is not measured"
_OFF = ("0", "none", "null")


def take_verify(given: Given, *, writes: bool) -> tuple[bool, list[str]]:
    """Take verify and do_verify: whether the load is verified, and what to say of it.

    Raises:
        UsageError: the job only reads what another wrote, in which marks of ours are unknown.
    """
    option, checks, backlog = given.take("verify"), given.take("do_verify"), given.take("verify_backlog")
    if option is None or option.value in _OFF:
        return False, []
    if not writes:
        raise option.error("reading what another job wrote is not driven: let the job that writes verify itself")
    if not switch(checks, default=True):
        return False, [f"verify={option.value} with do_verify=0: the marks that fio only writes are left out"]
    notes = [_BACKLOG] if backlog is not None and backlog.value != "0" else []
    return True, [
        *notes,
        f"verify={option.value}: driven as --verify, which marks every 512 bytes in its own way, checks "
        "reads, and at the end reads back all that was written",
    ]
