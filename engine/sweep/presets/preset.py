"""What a preset is: the loads of a published study, and the form of its tables."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence

from msgspec import Struct

from engine.job.spec import JobSpec
from engine.sweep.plan import NextLoad, each_once
from engine.sweep.presets.table import PresetPoint, StudyTable

AGAIN = "again"
"""Part of a preset with a command, in which its first one is measured once more after a second command."""


class HostSize(Struct, frozen=True):
    """What the axes of a study are scaled to."""

    cpus: int
    memory_bytes: int

    @classmethod
    def here(cls) -> HostSize:
        """Processors that this process may use, and the memory of the host."""
        return cls(len(os.sched_getaffinity(0)), os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


class PresetPart(Struct, frozen=True):
    """A job with its axes, as --vary names them; a preset has several where fixed settings differ."""

    name: str
    job: JobSpec
    axes: tuple[str, ...]


def _no_remarks(_job: JobSpec, _host: HostSize) -> tuple[str, ...]:
    return ()


def _no_refusal(_job: JobSpec) -> str:
    return ""


class Preset(Struct, frozen=True):
    """A published study that can be repeated here."""

    name: str
    title: str
    """What varies, in one line."""
    source: str
    """Who published the figures beside the measured ones."""
    parts: Callable[[JobSpec, HostSize], tuple[PresetPart, ...]]
    tables: Callable[[Sequence[PresetPoint]], tuple[StudyTable, ...]]
    next_load: NextLoad = each_once
    """Chooses the next point of a curve by those before it."""
    published: tuple[str, ...] = ()
    """Published facts without a row of their own, one line each."""
    scratch_targets: Callable[[HostSize], int] = lambda _host: 1
    """How many scratch files are driven where no target is named."""
    remarks: Callable[[JobSpec, HostSize], tuple[str, ...]] = _no_remarks
    """What cannot be repeated on these targets or means less there, one line each."""
    refusal: Callable[[JobSpec], str] = _no_refusal
    """Why it cannot run on these targets at all, with what to do; empty if it can."""
    is_threads: bool = False
    """Whether the study counts threads with an I/O each: its axis `qd`, of all targets, is `threads` as well."""
    tunables: tuple[str, ...] = ()
    """Tunables that are axes of the study itself, as its tables show them; others may vary, too."""
    rounds: int = 0
    """How often it measures all points, where it sets the values of each axis alone; 0: each combination once."""
    is_toggled: bool = False
    """Whether a command of the operator (--toggle) runs before its second part, and another (--toggle-back) may follow
    it, after which the first part is measured again."""


def doubled(most: int) -> str:
    """List 1, 2, 4 ... and the number itself: "1,2,4,6" for 6."""
    values = [1]
    while values[-1] * 2 < most:
        values.append(values[-1] * 2)
    return ",".join(map(str, dict.fromkeys((*values, most))))


def disks_of(host: HostSize) -> int:
    """Scratch files that show the effect of more disks, without more of them than processors can drive."""
    return min(max(host.cpus, 2), 8)


def one_target(job: JobSpec, _host: HostSize) -> tuple[str, ...]:
    """Remark that the number of disks cannot vary over a single target."""
    if len(job.targets) > 1:
        return ()
    return ("one target: the number of disks does not vary; give more with --target",)
