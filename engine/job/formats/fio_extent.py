"""Where the I/Os of a fio job go on its files, and after how much it ends (fio(1), I/O size, Target file/device)."""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from engine.job.formats.fio_sections import Given, Option
from engine.job.formats.fio_targets import Files
from engine.job.formats.fio_values import Units
from engine.job.formats.text_file import quoted
from engine.job.sizes import format_size
from engine.job.spec import Access, JobSpec, TargetSpec
from engine.job.validate import MAX_LOOPS
from engine.text import safe_text

_PERCENT = re.compile(r"([0-9]{1,3})%")
_SECTOR_BYTES = 512
_TAKE_TURNS = (
    "numjobs with sequential order: all clones take turns in one load; in fio each goes on by itself, and one may get "
    "ahead of the others"
)


class FioExtent(Struct, frozen=True):
    """Fields of a JobSpec that are about bytes of each target."""

    size_bytes: int | None = None
    offset_bytes: int = 0
    io_bytes: int | None = None
    loops: int | None = None
    streams: int = 1
    stream_step_bytes: int | None = None
    notes: tuple[str, ...] = ()


class Clones(Struct, frozen=True):
    """What of a job its extent depends on."""

    files: Files
    jobs: int
    access: Access
    block_sizes: Sequence[int]

    @property
    def files_of_each(self) -> int:
        """How many files each clone works on."""
        count = len(self.files.targets)
        return count if self.files.shared else count // self.jobs

    @property
    def sharing(self) -> int:
        """How many clones work on each file."""
        return self.jobs if self.files.shared else 1

    @property
    def unit(self) -> int:
        """What every block is a divisor of."""
        return math.lcm(*self.block_sizes)


def take_extent(given: Given, units: Units, clones: Clones, *, timed: bool) -> FioExtent:
    """Take size, filesize, offset, offset_increment, io_size, number_ios and loops.

    Without time_based a job ends when its size is done, `loops` times, or its io_size; clones each do all of that.

    Raises:
        UsageError: they cannot be read, or what they ask for together is not driven.
    """
    size, filesize = given.take("size"), given.take("filesize")
    loops = _loops(given.take("loops"), units)
    ends = (given.take("io_size", "io_limit"), given.take("number_ios"))
    offset_bytes = _offset(given, units, clones)
    notes: list[str] = []
    each = _bytes_of_each(size, units, clones, notes)
    region = _region(filesize, units, clones, each, notes)
    ends_before = each is not None and region is not None and each < region
    once = _fewer(ends, units, clones, each if ends_before else None, region)
    extent = FioExtent(region, offset_bytes, once, clones.sharing * loops, notes=tuple(notes))
    extent = _with_streams(given, units, clones, extent)
    return _endless(extent) if timed else extent


def _endless(extent: FioExtent) -> FioExtent:
    return FioExtent(
        extent.size_bytes,
        extent.offset_bytes,
        streams=extent.streams,
        stream_step_bytes=extent.stream_step_bytes,
        notes=extent.notes,
    )


def _loops(option: Option | None, units: Units) -> int:
    loops = 1 if option is None else units.integer(option, most=MAX_LOOPS)
    if option is not None and loops < 1:
        raise option.error(f"{loops} is out of range: 1 to {MAX_LOOPS}")
    return loops


def _bytes_of_each(option: Option | None, units: Units, clones: Clones, notes: list[str]) -> int | None:
    """Share the size of a job out to its files, in whole blocks; None is all of each file."""
    if option is None or option.text == "100%":
        return None
    if option.text.endswith(("z", "Z")):
        raise option.error("a part of a device is not driven by zones: give it in bytes, as in 10g")
    if _PERCENT.fullmatch(option.text):
        return _whole(option, _percent_of(option, clones), clones, notes)
    return _whole(option, units.integer(option) // clones.files_of_each, clones, notes)


def _whole(option: Option, wanted: int, clones: Clones, notes: list[str]) -> int:
    whole = wanted - wanted % clones.unit
    if not whole:
        raise option.error(
            f"leaves {wanted} bytes for each file: at least {format_size(clones.unit)}, a multiple of every block"
        )
    if whole < wanted:
        notes.append(f"{option.name}: {format_size(whole)} of each file, a multiple of every block")
    return whole


def _percent_of(option: Option, clones: Clones) -> int:
    """Take a share of every file, which must be the same for all of them."""
    percent, files = int(option.text.removesuffix("%")), clones.files
    if percent > 100:
        raise option.error(f"{percent} % is out of range: up to 100%")
    if not files.names:
        raise option.error("a share of files that are still to be made: give it in bytes")
    parts = {_file_bytes(option, target) * percent // 100 for target in files.targets}
    if len(parts) > 1:
        raise option.error("a share of files of several sizes is not driven: give it in bytes")
    return parts.pop()


def _file_bytes(option: Option, target: TargetSpec) -> int:
    """Look up the size of a file or block device without opening it."""
    path = target.path or ""
    try:
        status = Path(path).stat()
        if stat.S_ISBLK(status.st_mode):
            number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
            return int(Path(f"/sys/dev/block/{number}/size").read_text(encoding="ascii")) * _SECTOR_BYTES
    except (OSError, ValueError):
        raise option.error(f"the size of {safe_text(path)} cannot be read now: give it in bytes") from None
    return status.st_size


def _region(filesize: Option | None, units: Units, clones: Clones, each: int | None, notes: list[str]) -> int | None:
    """Return the bytes used of each file: all of it for random order, even if the job ends before."""
    if filesize is None or filesize.text == "0":
        return each
    if "-" in filesize.text or "," in filesize.text:
        raise filesize.error(f"{quoted(filesize.text)}: files of drawn sizes are not driven: give one size")
    region = _whole(filesize, units.integer(filesize), clones, notes)
    if each is not None and each < region and clones.files_of_each > 1:
        raise filesize.error("with a smaller size and several files it is not driven: leave size out")
    return region


def _offset(given: Given, units: Units, clones: Clones) -> int:
    option, align = given.take("offset", "fileoffset"), given.take("offset_align")
    if option is None:
        return 0
    if _PERCENT.fullmatch(option.text):
        wanted = _percent_of(option, clones)
        unit = (0 if align is None else units.integer(align)) or min(clones.block_sizes)
        return -(-wanted // unit) * unit
    return units.integer(option)


def _fewer(
    ends: tuple[Option | None, Option | None], units: Units, clones: Clones, once: int | None, region: int | None
) -> int | None:
    """Take what ends a clone before or after all of its size; returns the bytes on each file, None for all of it."""
    io_size, number = ends
    if io_size is not None and io_size.text.endswith("%"):
        raise io_size.error("a share is not driven here: give it in bytes")
    wanted = units.integer(io_size) if io_size is not None else 0
    if io_size is not None and wanted:
        if clones.files_of_each > 1 and wanted % (clones.files_of_each * clones.unit):
            raise io_size.error(f"does not leave whole blocks for each of {clones.files_of_each} files")
        once = wanted // clones.files_of_each
    ios = units.integer(number) if number is not None else 0
    if number is not None and ios:
        if len(clones.block_sizes) > 1 or clones.files_of_each > 1:
            raise number.error("with several block sizes or files it is not driven: give io_size")
        once = min(once or region or ios * clones.unit, ios * clones.unit)
    return once


def _with_streams(given: Given, units: Units, clones: Clones, extent: FioExtent) -> FioExtent:
    """Make a stream of every clone that goes through a file in sequence, and apart by offset_increment."""
    option = given.take("offset_increment")
    percent = None if option is None else _PERCENT.fullmatch(option.text)
    step = 0 if option is None else units.integer(option) if percent is None else _percent_of(option, clones)
    if clones.sharing == 1:
        return extent
    if clones.access is Access.RANDOM:
        if option is not None and step:
            raise option.error("clones with random order, each in another part, are not driven: use sections instead")
        return extent
    size_bytes, io_bytes, loops = extent.size_bytes, extent.io_bytes, extent.loops or 1
    if option is not None and step:
        if size_bytes is None:
            raise option.error("clones of different length are not driven: give size as well")
        io_bytes, loops = (io_bytes or size_bytes) * clones.jobs, loops // clones.jobs
        size_bytes += step * (clones.jobs - 1)
    return FioExtent(size_bytes, extent.offset_bytes, io_bytes, loops, clones.jobs, step, (*extent.notes, _TAKE_TURNS))


def fields_of(extent: FioExtent) -> dict[str, Any]:
    """Name its values as the fields of JobSpec."""
    names = ("size_bytes", "offset_bytes", "io_bytes", "loops", "streams", "stream_step_bytes")
    return {name: getattr(extent, name) for name in names if getattr(extent, name) != getattr(JobSpec(), name)}
