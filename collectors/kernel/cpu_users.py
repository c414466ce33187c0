"""Which processes used the processors of the host between two moments."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping

from msgspec import Struct

from collectors.kernel.identity import storable_name
from engine._native import read_attributes
from engine.hostfs.kernel_files import process_ids
from engine.text import whole_number

MOST_USERS = 5
_USER, _SYSTEM, _STARTED = 11, 12, 19
"""Fields 14, 15 and 22 of proc_pid_stat(5), counted from after the command."""


class CpuUser(Struct, frozen=True):
    """One process and what it used."""

    name: str
    """The command, which may hold anything."""
    pid: int
    share_pct: float
    """Share of all processors."""


class ProcessTimes(Struct, frozen=True):
    """CPU time of every process so far, by pid and start time."""

    taken_ns: int
    ticks: Mapping[tuple[int, int], int]
    names: Mapping[tuple[int, int], str]

    @classmethod
    def now(cls, procfs: str = "/proc") -> ProcessTimes:
        """Read the stat file of every process; those that cannot be read are left out."""
        pids = process_ids(procfs)
        taken_ns, found = time.monotonic_ns(), dict(_times(procfs, pids))
        ticks = {key: used for key, (used, _) in found.items()}
        return cls(taken_ns, ticks, {key: name for key, (_, name) in found.items()})

    def users_since(self, earlier: ProcessTimes, cpus: int) -> tuple[CpuUser, ...]:
        """Return the processes that used most since, the most first, without this one.

        One that began meanwhile counts from 0; one that ended meanwhile is missing.
        """
        possible = cpus * (self.taken_ns - earlier.taken_ns) / 1e9 * os.sysconf("SC_CLK_TCK")
        used = {key: ticks - earlier.ticks.get(key, 0) for key, ticks in self.ticks.items() if key[0] != os.getpid()}
        most = sorted((key for key, ticks in used.items() if ticks > 0), key=lambda key: -used[key])
        return tuple(
            CpuUser(self.names[key], key[0], min(100.0 * used[key] / possible, 100.0))
            for key in most[:MOST_USERS]
            if possible > 0
        )


def _times(procfs: str, pids: list[str]) -> Iterator[tuple[tuple[int, int], tuple[int, str]]]:
    for pid, (text,) in zip(pids, read_attributes(procfs, pids, ["stat"]), strict=True):
        if text is None:
            continue
        # A command may hold anything, brackets too.
        command, fields = text[text.find(b"(") + 1 : text.rfind(b")")], text[text.rfind(b")") + 1 :].split()
        numbers = [whole_number(fields[at]) for at in (_USER, _SYSTEM, _STARTED)] if len(fields) > _STARTED else [None]
        if None not in numbers:
            user, system, started = (number or 0 for number in numbers)
            yield (int(pid), started), (user + system, storable_name(command.decode("utf-8", "surrogateescape")))
