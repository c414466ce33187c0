"""Presets of sweeps as a real process, over scratch files and files that are not to be written."""

from __future__ import annotations

import json
import os
import re
import select
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from engine.config import SCRATCH_ENV
from tests import needs
from tests.kernel.conftest import Storage
from tests.kernel.forked_command import Forked, lunscope

FIGURES = "1.5s"
"""Time of a point whose figures are looked at: in less a busy host may not have served enough samples for any."""

CALM = ("--rate", "500", "--tier", "kernel")
"""I/Os per second that leave the host to others: nothing here is about how fast a load is."""


def _preset(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, SCRATCH_ENV: str(tmp_path / "scratch")}
    return lunscope("sweep", *CALM, "--preset", *arguments, env=environment, timeout_s=300)


@pytest.mark.waits
def test_skytap_measures_its_figures_on_scratch_files(tmp_path: Path) -> None:
    points = ("--vary", "bs=4k,64k", "--qd", "4", "--vary", "stripe_width=1,2")
    done = _preset(tmp_path, "skytap", *points, "--runtime", "2.5s", "--size", "16m", "--json")
    assert done.returncode == 0, done.stderr
    assert "lunscope: skytap: bs=4k,64k x stripe_width=1,2 x qd=4 x read_pct=80: 4 points of 2.5 s" in done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    assert (document["schema"], document["complete"]) == ("lunscope.preset/1", True)
    best, every = (table["rows"] for table in document["tables"])
    assert [row["block"] for row in best] == ["4k", "64k"]
    assert best[0]["published_elsewhere"]["IOPS"] == "130,800"
    assert [(row["block"], row["disks"]) for row in every] == [("4k", 1), ("4k", 2), ("64k", 1), ("64k", 2)]
    for row in every:
        assert row["megabytes_per_s"] == pytest.approx(row["iops_x_block_megabytes_per_s"])
        assert row["mean_ms"] > 0
        assert row["average_peak_ms"] > 0
        assert row["host_cpu_s_per_gb"] > 0
    assert len(document["parts"][0]["sweep"]["curves"]) == 2


def test_parts_follow_each_other_and_make_one_table(tmp_path: Path) -> None:
    points = ("--vary", "read_pct=0,100", "--vary", "stripe_width=1")
    session = tmp_path / "session"
    limits = ("--runtime", "0.5s", "--size", "16m", "--record", str(session))
    done = _preset(tmp_path, "fourcorners", *points, *limits)
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stdout.splitlines() if line.endswith(":") and not line.endswith("):")] == [
        "scale over disks:",
        "sequential, MiB/s by share of reads:",
        "random, IOPS by share of reads:",
    ]
    assert "73,040 IOPS 8K" in done.stdout
    assert session.stat().st_size > 0


def test_targets_that_may_not_be_written_are_read_only(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(4 << 20))
    before = file.read_bytes()
    done = _preset(tmp_path, "fourcorners", "--target", str(file), "--runtime", "0.3s", "--json")
    assert done.returncode == 0, done.stderr
    assert f"all that writes is left out: allow it with --allow-write {file}" in done.stderr
    assert [row["disks"] for row in json.loads(done.stdout)["tables"][0]["rows"]] == [1]
    assert file.read_bytes() == before


def test_interrupted_preset_prints_what_was_measured(tmp_path: Path) -> None:
    ours, theirs = os.openpty()
    points = ("--preset", "fourcorners", "--runtime", "1s", "--size", "16m", "--json")
    with Forked(
        "sweep",
        *CALM,
        *points,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, SCRATCH_ENV: str(tmp_path / "scratch")},
    ) as running:
        os.close(theirs)
        _read_until(ours, re.compile(rb"\b1/[0-9]+ measured"))
        running.send_signal(signal.SIGINT)
        out, _ = running.communicate(timeout=120)
    os.close(ours)
    assert running.returncode == 130
    document: dict[str, Any] = json.loads(out)
    assert not document["complete"]
    assert [part["name"] for part in document["parts"]] == ["sequential"]
    assert document["parts"][0]["sweep"]["ended"] == "stopped"
    assert document["tables"][0]["title"] == "sequential, MiB/s by share of reads"


def _kill_after(tmp_path: Path, trials: Path, count: int, *arguments: str) -> int:
    """Begin a preset, kill it with SIGKILL once so many points are in the file; returns how many are."""
    process = Forked(
        "sweep",
        *CALM,
        "--preset",
        *arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, SCRATCH_ENV: str(tmp_path / "scratch")},
        start_new_session=True,
    )
    deadline_s = time.monotonic() + 120
    while _points(trials) < count:
        assert time.monotonic() < deadline_s, "no point was ever written"
        assert process.poll() is None
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return _points(trials)


def _points(trials: Path) -> int:
    return len(_trials(trials)) if trials.exists() else 0


def _trials(trials: Path) -> list[Mapping[str, Any]]:
    """Measurements in a file; the first line names what it belongs to, and one has the host."""
    lines = trials.read_text().split("\n")[1:-1]  # what is still being written has no end of line
    return [document for line in lines if "host" not in (document := json.loads(line))]


def test_preset_goes_on_after_sigkill(tmp_path: Path) -> None:
    trials = tmp_path / "trials"
    points = ("--vary", "read_pct=0,50,100", "--vary", "stripe_width=1", "--size", "4m", "--trials", str(trials))
    arguments = ("fourcorners", *points, "--runtime", "0.5s", "--json")
    kept = _kill_after(tmp_path, trials, 2, *arguments)
    measured = _trials(trials)[:kept]
    done = _preset(tmp_path, *arguments)
    assert done.returncode == 0, done.stderr
    assert f"goes on after {kept} measurements in {trials}" in done.stderr
    document = json.loads(done.stdout)
    assert document["complete"]
    assert (_points(trials), _points(tmp_path / "trials.random")) == (3, 3)
    iops = [trial["iops"] for curve in document["parts"][0]["sweep"]["curves"] for trial in curve["trials"]]
    assert {trial["iops"] for trial in measured} <= set(iops)
    # All of it is done: the same command only evaluates.
    again = _preset(tmp_path, *arguments)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["tables"] == document["tables"]


def test_command_of_flashcache_is_not_run_again_once_the_second_half_began(tmp_path: Path) -> None:
    file, trials, runs = tmp_path / "file", tmp_path / "trials", tmp_path / "runs"
    file.write_bytes(os.urandom(4 << 20))
    arguments = ("flashcache", "--target", str(file), "--read-pct", "100", "--vary", "qd=1,4,8", "--runtime", "0.5s")
    kept = ("--json", "--trials", str(trials), "--toggle", f"echo run >> {runs}")
    _kill_after(tmp_path, tmp_path / "trials.after", 1, *arguments, *kept)
    assert runs.read_text() == "run\n"
    done = _preset(tmp_path, *arguments, *kept)
    assert done.returncode == 0, done.stderr
    assert "--toggle is not run again" in done.stderr
    assert runs.read_text() == "run\n"
    assert [row["threads"] for row in json.loads(done.stdout)["tables"][0]["rows"]] == [1, 4, 8, "highest"]


def _read_until(fd: int, wanted: re.Pattern[bytes]) -> None:
    """Read the progress that a terminal shows."""
    seen, deadline_s = b"", time.monotonic() + 120
    while not wanted.search(seen):
        assert time.monotonic() < deadline_s, seen
        if select.select([fd], [], [], 1.0)[0]:
            seen += os.read(fd, 4096)


def _flashcache(tmp_path: Path, command: str, *more: str) -> subprocess.CompletedProcess[str]:
    file = tmp_path / "file"
    file.write_bytes(os.urandom(4 << 20))
    points = ("--target", str(file), "--allow-write", str(file), "--destroy-data", "--vary", "qd=1,8")
    return _preset(tmp_path, "flashcache", *points, "--runtime", FIGURES, "--json", "--toggle", command, *more)


@pytest.mark.waits
def test_flashcache_compares_before_and_after_the_command(tmp_path: Path) -> None:
    done = _flashcache(tmp_path, f"echo switched; touch {tmp_path}/switched")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "switched").exists()
    assert "switched" in done.stderr.splitlines()
    document = json.loads(done.stdout)
    assert [part["name"] for part in document["parts"]] == ["before", "after"]
    rows = document["tables"][0]["rows"]
    assert [row["threads"] for row in rows] == [1, 8, "highest"]
    for row in rows:
        assert row["iops_times"] == pytest.approx(row["iops_after"] / row["iops_before"])
    assert rows[2]["published_elsewhere"]["result"].startswith("2.7x IOPS")


def test_flashcache_ends_where_the_command_fails_and_keeps_what_was_measured(tmp_path: Path) -> None:
    done = _flashcache(tmp_path, "exit 3", "--toggle-back", f"touch {tmp_path}/back")
    assert done.returncode == 1
    assert "command 'exit 3': ended with status 3: nothing more is measured" in done.stderr
    assert f"'touch {tmp_path}/back' was not run: run it yourself, where it undoes 'exit 3'" in done.stderr
    assert not (tmp_path / "back").exists()
    document = json.loads(done.stdout)
    assert not document["complete"]
    assert [part["name"] for part in document["parts"]] == ["before"]


@needs.loop
def test_multipath_drives_each_policy_over_the_paths_of_a_lun(tmp_path: Path, storage: Storage) -> None:
    backing = storage.image(8 << 20)
    paths = [storage.loop(backing=backing), storage.loop(backing=backing)]
    done = _preset(tmp_path, "multipath", "--lun", ",".join(paths), "--qd", "4", "--runtime", FIGURES, "--json")
    assert done.returncode == 0, done.stderr
    assert f"all that writes is left out: allow it with --allow-write {paths[0]}" in done.stderr
    tables = json.loads(done.stdout)["tables"]
    rows, scaled = tables[0]["rows"], tables[2]["rows"]
    assert [(row["block"], row["paths"]) for row in scaled] == [("1k", 1), ("1k", 2), ("64k", 1), ("64k", 2)]
    assert [row["times_one"] for row in scaled if row["paths"] == 1] == [1.0, 1.0]
    policies = ["multipath off", "round-robin", "least-command-load"]
    assert [(row["direction"], row["policy"]) for row in rows] == [("read", policy) for policy in policies]
    assert all(row["iops_queue_depth_4"] > 0 for row in rows)
    assert rows[1]["published_elsewhere"]["QD 4"] == "294,000"
