"""Which processes used the processors meanwhile: from stat files, with ones that begin, end and reuse a number."""

from __future__ import annotations

import os
from pathlib import Path

from collectors.kernel.cpu_users import CpuUser, ProcessTimes
from engine.replacing import replace

HZ = os.sysconf("SC_CLK_TCK")


def write(folder: Path, pid: int, command: str, seconds: float, started: int = 5) -> None:
    place = folder / str(pid)
    place.mkdir(exist_ok=True)
    fields = ["R", *["0"] * 10, str(round(seconds * HZ)), "0", *["0"] * 6, str(started), *["0"] * 30]
    (place / "stat").write_text(f"{pid} ({command}) {' '.join(fields)}\n")


def read(folder: Path, at_s: float) -> ProcessTimes:
    return replace(ProcessTimes.now(str(folder)), taken_ns=round(at_s * 1e9))


def test_the_ones_that_used_most_come_first_and_this_process_is_none_of_them(tmp_path: Path) -> None:
    for pid, command, seconds in ((1, "init", 100.0), (2, "cc (1) x", 3.0), (3, "sh", 1.0), (os.getpid(), "me", 1.0)):
        write(tmp_path, pid, command, seconds)
    write(tmp_path, 4, "gone", 2.0)
    before = read(tmp_path, 0)
    (tmp_path / "4" / "stat").unlink()
    write(tmp_path, 2, "cc (1) x", 5.0)
    write(tmp_path, 3, "other", 0.5, started=6)
    write(tmp_path, 5, "late", 1.0)
    write(tmp_path, os.getpid(), "me", 9.0)
    (tmp_path / "6").mkdir()
    (tmp_path / "6" / "stat").write_text("6 (cut")
    after = read(tmp_path, 2.0)
    assert after.users_since(before, 2) == (
        CpuUser("cc (1) x", 2, 50.0),
        CpuUser("late", 5, 25.0),
        CpuUser("other", 3, 12.5),
    )
    assert after.users_since(after, 2) == ()


def test_the_processes_of_this_host_are_read() -> None:
    assert any(pid == os.getpid() for pid, _ in ProcessTimes.now().ticks)
