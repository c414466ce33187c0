"""Sections of a fio job that read back and check what another one wrote: done by the verification of that load.

The marks of fio's checksums are not those of --verify, so that a load cannot check what another wrote. A load with
--verify reads everything back itself when its last write is done, which is what such a section is for.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from engine.job.formats.fio_sections import FioSection, Given, Option
from engine.job.formats.fio_values import switch

_SAME = ("filename", "directory", "size", "offset", "fileoffset", "verify")
_OFF = ("0", "none", "null")
_READS = ("read", "randread")
_WRITES = ("write", "randwrite")


class ReadBack(Struct, frozen=True):
    """The sections that are driven, and what to say of those that are not."""

    sections: tuple[FioSection, ...]
    notes: tuple[str, ...] = ()


def without_read_back(sections: Sequence[FioSection]) -> ReadBack:
    """Leave out each section that only checks, behind a stonewall, what the one before wrote without checking it."""
    kept: list[FioSection] = []
    notes: list[str] = []
    for section in sections:
        if kept and _reads_back(kept[-1], section):
            writer = kept[-1]
            checks = Option("do_verify", "1", writer.location)
            kept[-1] = FioSection(writer.name, writer.location, (*writer.options, checks))
            notes.append(
                f"[{section.name}] reads back what [{writer.name}] wrote: that is done by the --verify of "
                f"[{writer.name}] after its last write, with its own marks and order, and is not measured"
            )
        else:
            kept.append(section)
    return ReadBack(tuple(kept), tuple(notes))


def _reads_back(writer: FioSection, reader: FioSection) -> bool:
    wrote, reads = Given(writer), Given(reader)
    if not switch(reads.take("stonewall", "wait_for_previous")) or not switch(reads.take("do_verify"), default=True):
        return False
    verify, checked = wrote.seen("verify"), wrote.take("do_verify")
    leaves_marks = verify is not None and verify.value not in _OFF and checked is not None and not switch(checked)
    orders = [each.take("rw", "readwrite") for each in (wrote, reads)]
    words = ["read" if order is None else order.text for order in orders]
    return (
        leaves_marks
        and words[0] in _WRITES
        and words[1] in _READS
        and wrote.seen("filename") is not None
        and all(_text(wrote, name) == _text(reads, name) for name in _SAME)
    )


def _text(given: Given, name: str) -> str | None:
    option = given.seen(name)
    return None if option is None else option.text
