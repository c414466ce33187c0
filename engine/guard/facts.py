"""What was found on a target that makes its figures less than they seem."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from engine.guard.emptiness import sampled, unwritten_share
from engine.guard.sysblock import BlockDevice, look_up, write_cache
from engine.job.spec import JobSpec
from engine.running.nowait import reads_block

_SAMPLES = 64
_ALL_SAMPLES = 1024
"""Samples over all targets of a job, so that hundreds of disks do not take minutes to look at."""


@dataclass(frozen=True, slots=True)
class TargetFacts:
    """Looked at once, when the target was opened."""

    unwritten_share: float = 0.0
    """Of a file, 0 to 1: holes, and what was allocated but never written."""
    samples: int = 0
    """Blocks that could be read."""
    zero_share: float = 0.0
    """Of the samples, 0 to 1."""
    compressible_share: float = 0.0
    """Of the samples, 0 to 1; zeros are not among them."""
    write_cache: str | None = None
    """`write back` or `write through` of the disk below, None where it is not known."""
    reads_block: bool = False
    """Whether reads through the page cache block (engine.running.nowait)."""


def file_facts(sysfs: Path, fd: int, size_bytes: int, job: JobSpec) -> TargetFacts:
    """Look at a file that was there before, and at the disk below it."""
    unwritten = unwritten_share(fd, size_bytes)
    disk = look_up(sysfs, os.fstat(fd).st_dev)
    return _facts(disk, fd, size_bytes, job, unwritten)


def block_facts(device: BlockDevice | None, fd: int, size_bytes: int, job: JobSpec) -> TargetFacts:
    """Look at a device."""
    return _facts(device, fd, size_bytes, job, 0.0)


def made_facts(sysfs: Path, fd: int) -> TargetFacts:
    """Look at the disk below a file that lunscope makes and fills itself."""
    disk = look_up(sysfs, os.fstat(fd).st_dev)
    return TargetFacts(write_cache=write_cache(disk) if disk else None, reads_block=reads_block(fd))


def _facts(disk: BlockDevice | None, fd: int, size_bytes: int, job: JobSpec, unwritten: float) -> TargetFacts:
    kinds = sampled(fd, size_bytes, max(4, min(_SAMPLES, _ALL_SAMPLES // len(job.targets))))
    return TargetFacts(
        unwritten_share=unwritten,
        samples=len(kinds),
        zero_share=kinds.count("zeros") / len(kinds) if kinds else 0.0,
        compressible_share=kinds.count("compressible") / len(kinds) if kinds else 0.0,
        write_cache=write_cache(disk) if disk else None,
        reads_block=reads_block(fd),
    )
