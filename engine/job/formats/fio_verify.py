"""Verification of what a fio job writes: driven as --verify, whatever the checksum (fio(1), Verification)."""

from __future__ import annotations

from engine.job.formats.fio_sections import Given
from engine.job.formats.fio_values import switch

_OFF = ("0", "none", "null")


def take_verify(given: Given, *, writes: bool) -> tuple[bool, list[str]]:
    """Take verify and do_verify: whether the load is verified, and what to say of it.

    Raises:
        UsageError: the job only reads what another wrote, in which marks of ours are unknown.
    """
    option, checks = given.take("verify"), given.take("do_verify")
    if option is None or option.value in _OFF:
        return False, []
    if not writes:
        raise option.error("reading what another job wrote is not driven: let the job that writes verify itself")
    if not switch(checks, default=True):
        return False, [f"verify={option.value} with do_verify=0: the marks that fio only writes are left out"]
    return True, [
        f"verify={option.value}: driven as --verify, which marks every 512 bytes in its own way, checks "
        "reads, and at the end reads back all that was written"
    ]
