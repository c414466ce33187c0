"""Loads over a device that stops answering: they say so, and end in time, with what they have."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, ClassVar

import pytest

from collectors.session.reader import SessionReader
from engine.backend.outstanding import Outstanding
from engine.job.spec import Backend, JobSpec, Knobs, Permissions, TargetSpec
from engine.running.control import LoadControl, LoadState
from tests import needs
from tests.ended import has_ended
from tests.kernel.backends import BACKENDS
from tests.kernel.forked_command import Forked
from tests.kernel.stalling import StallingDisk, stalling_disk
from tests.unit.documents.printed import unwrapped

pytestmark = [needs.root, needs.loop, needs.mkfs_ext4, needs.fsfreeze]

ROOT = Path(__file__).parents[2]
SECOND_SIGNALS = [
    pytest.param("uring", signal.SIGTERM, marks=needs.io_uring),
    ("threads", signal.SIGTERM),
    ("aio", signal.SIGTERM),
    ("threads", signal.SIGINT),
    ("threads", signal.SIGHUP),
]
"""Which signal it was makes no difference to an engine."""
PROMPT_S = 20.0
"""How long what is to happen at once may take on a machine that has other work."""


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[StallingDisk]:
    with stalling_disk(tmp_path) as disk:
        yield disk
        disk.thaw()
        Run.kill_all()


class Run:
    """`lunscope run` without a screen, with its standard error as it comes."""

    _begun: ClassVar[list[Run]] = []

    def __init__(self, *arguments: str | Path) -> None:
        words = ("run", "--headless", "--tier", "kernel", *arguments)
        self.process = Forked(*words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self._begun.append(self)
        self.lines: list[tuple[float, str]] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @classmethod
    def kill_all(cls) -> None:
        """Kill those that a test that failed has left: they would keep their disk busy."""
        while cls._begun:
            process = cls._begun.pop().process
            process.kill()
            process.wait(60)

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append((time.monotonic(), line.rstrip()))

    def wait_for(self, text: str, timeout_s: float = 20.0) -> float:
        """Wait until a line of standard error holds a text; returns when it came."""
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s:
            for moment_s, line in list(self.lines):
                if text in line:
                    return moment_s
            assert self.process.poll() is None, f"ended: {self.lines}"
            time.sleep(0.02)
        raise AssertionError(f"{text!r} was not said: {self.lines}")

    def terminate_twice(self) -> None:
        """Send SIGTERM and, once a busy host has handled it, another: two that are handled within 0.5 s count once."""
        self.process.send_signal(signal.SIGTERM)
        time.sleep(4)
        self.process.send_signal(signal.SIGTERM)

    def end(self, timeout_s: float = PROMPT_S) -> tuple[int, str]:
        """Wait for the end; returns the exit code and standard output."""
        started_s = time.monotonic()
        assert self.process.stdout is not None
        out = _read_within(self.process.stdout, 45.0)
        self.process.wait(60)
        self._reader.join(10)
        took_s = time.monotonic() - started_s
        assert took_s < timeout_s, f"took {took_s:.1f} s to end: {self.lines}"
        assert not any("Traceback" in line for _, line in self.lines), self.lines
        return self.process.returncode, out


def _read_within(stream: IO[str], timeout_s: float) -> str:
    """Read to the end; a process that was given up must not hold the pipe open."""
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(stream.read()), daemon=True)
    reader.start()
    reader.join(timeout_s)
    assert read, "standard output stays open"
    return read[0]


def children_of(pid: int) -> list[int]:
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def started(disk: StallingDisk, *arguments: str | Path) -> Run:
    """Start a load that writes to a disk, and wait until it does."""
    options = ("--allow-write", disk.device, "--destroy-data", "--rw", "randwrite", "--qd", "8")
    run = Run("--target", disk.device, *options, *arguments)
    wait_for_writes(disk, run)
    return run


def stalled(disk: StallingDisk, *arguments: str | Path) -> Run:
    """Start a load, let it write, and freeze what it writes to."""
    run = started(disk, "--runtime", "60s", *arguments)
    disk.freeze()
    return run


def wait_for_writes(disk: StallingDisk, run: Run | None = None) -> None:
    status = Path(f"/sys/block/{Path(disk.device).name}/stat")
    before, deadline_s = int(status.read_text().split()[4]), time.monotonic() + 30
    while int(status.read_text().split()[4]) < before + 50:
        assert time.monotonic() < deadline_s, "the load writes nothing"
        assert run is None or run.process.poll() is None, run.lines
        time.sleep(0.02)


# ------------------------------------------------------------------------------------------------- what is said


@pytest.mark.parametrize("engine", BACKENDS)
def test_what_does_not_come_back_is_named_and_so_is_its_return(disk: StallingDisk, engine: str) -> None:
    run = stalled(disk, "--engine", engine)
    frozen_s = time.monotonic()
    named_s = run.wait_for(f"waiting for 8 I/Os on {disk.device}, oldest for ")
    assert named_s - frozen_s < 2.0 + PROMPT_S
    time.sleep(1.5)
    disk.thaw()
    run.wait_for(f"8 I/Os on {disk.device} came back after ")
    run.process.send_signal(signal.SIGTERM)
    code, out = run.end()
    assert code == 128 + signal.SIGTERM
    assert "stall: from " in out
    assert "outstanding:" not in out


# ---------------------------------------------------------------------------------------------------- signals


@pytest.mark.parametrize(("engine", "number"), SECOND_SIGNALS)
def test_a_second_signal_ends_it_with_what_is_outstanding(
    disk: StallingDisk, engine: str, number: signal.Signals, tmp_path: Path
) -> None:
    session = tmp_path / "stall.lun"
    run = stalled(disk, "--engine", engine, "--json", "--record", session, "--interval", "0.2")
    run.wait_for("waiting for 8 I/Os")
    run.process.send_signal(number)
    time.sleep(1.5)
    assert run.process.poll() is None, "the first signal waits for what is outstanding"
    run.process.send_signal(number)
    code, out = run.end()
    assert disk.frozen
    assert code == 128 + number
    document = json.loads(out)
    (left,) = document["outstanding"]
    assert (left["target"], left["ios"]) == (disk.device, 8)
    assert left["oldest_s"] > 2.0
    assert 0 <= left["since_s"] < document["elapsed_s"]
    (stall,) = document["stalls"]
    assert (stall["returned"], stall["at_end"]) == (False, True)
    assert document["ended"] == "stopped"
    counted = document["total"]["ios"] + document["epochs"][0]["transient_ios"]
    reader = SessionReader(session)
    samples = [step.current for step in reader.steps(0, len(reader))]
    reader.close()
    assert not session.with_name(session.name + "-wal").exists(), "closed as one file"
    loads = [sample.tables["load"] for sample in samples if "load" in sample.tables]
    recorded = int((loads[-1].column("read_ios") + loads[-1].column("write_ios")).sum())
    assert recorded == counted, "nothing is counted twice, or that never came back"
    texts = [event.text for sample in samples for event in sample.events]
    assert any(text.startswith(f"waiting for 8 I/Os on {disk.device}") for text in texts), texts
    assert any("given up after" in text for text in texts), texts


def test_one_signal_and_the_return_of_all_ios_is_the_usual_end(disk: StallingDisk) -> None:
    run = stalled(disk, "--engine", "threads")
    run.wait_for("waiting for 8 I/Os")
    run.process.send_signal(signal.SIGTERM)
    time.sleep(1.0)
    disk.thaw()
    code, out = run.end()
    assert code == 128 + signal.SIGTERM
    assert "came back after" in out
    assert "past the end" in out
    assert "outstanding:" not in out


def test_a_signal_to_the_whole_group_counts_once(disk: StallingDisk) -> None:
    run = stalled(disk, "--engine", "threads")
    run.wait_for("waiting for 8 I/Os")
    (child,) = children_of(run.process.pid)
    os.kill(child, signal.SIGTERM)
    run.process.send_signal(signal.SIGTERM)
    time.sleep(1.5)
    assert run.process.poll() is None, "it was one signal"
    disk.thaw()
    assert run.end()[0] == 128 + signal.SIGTERM


# ---------------------------------------------------------------------------------------------------- the limit


@pytest.mark.parametrize("engine", BACKENDS)
def test_a_runtime_that_ends_over_a_stall_is_no_success(disk: StallingDisk, engine: str) -> None:
    run = started(disk, "--runtime", "2s", "--engine", engine, "--give-up", "1s")
    disk.freeze()
    code, out = run.end(timeout_s=2 + 1 + PROMPT_S)
    assert disk.frozen
    assert code == 1
    assert f"outstanding: 8 I/Os on {disk.device} never came back: given up after " in unwrapped(out)
    assert "(runtime over)" in out


def test_a_stall_that_outlasts_the_runtime_and_ends_in_time_is_no_success_either(disk: StallingDisk) -> None:
    run = started(disk, "--runtime", "2s", "--json")
    disk.freeze()
    time.sleep(5)
    disk.thaw()
    code, out = run.end()
    document = json.loads(out)
    assert code == 1
    assert document["outstanding"] == []
    assert [(stall["returned"], stall["at_end"]) for stall in document["stalls"]] == [(True, True)]


def test_a_stall_within_the_runtime_is_reported_and_no_failure(disk: StallingDisk) -> None:
    run = started(disk, "--runtime", "6s", "--json")
    disk.freeze()
    run.wait_for("waiting for 8 I/Os")
    disk.thaw()
    code, out = run.end(timeout_s=6 + PROMPT_S)
    assert code == 0
    assert [(stall["returned"], stall["at_end"]) for stall in json.loads(out)["stalls"]] == [(True, False)]


def test_nothing_is_left_of_a_process_that_gave_up(disk: StallingDisk) -> None:
    run = stalled(disk, "--engine", "threads", "--give-up", "1s")
    run.wait_for("waiting for 8 I/Os")
    (child,) = children_of(run.process.pid)
    run.process.send_signal(signal.SIGTERM)
    assert run.end()[0] == 128 + signal.SIGTERM
    assert has_ended(child), "its process has ended; threads that the kernel holds are all that is left"
    disk.thaw()
    deadline_s = time.monotonic() + 20
    while Path(f"/proc/{child}").exists() and time.monotonic() < deadline_s:
        time.sleep(0.1)
    state = Path(f"/proc/{child}/stat")
    assert not state.exists() or len(list(Path(f"/proc/{child}/task").iterdir())) == 1, "threads outlive the thaw"


# ------------------------------------------------------------------------------------------ other calls that hang


def test_the_filling_of_a_scratch_file_is_named_and_ends(disk: StallingDisk) -> None:
    folder = disk.mount / "scratch"
    folder.mkdir()
    disk.freeze()
    run = Run("--size", "4m", "--scratch-dir", folder, "--json")
    run.wait_for("waiting for ", timeout_s=40)
    run.terminate_twice()
    code, out = run.end()
    assert disk.frozen
    assert code == 128 + signal.SIGTERM
    assert json.loads(out)["outstanding"] != []


def test_cached_writes_that_hang_end_in_time(disk: StallingDisk) -> None:
    run = stalled(disk, "--engine", "threads", "--mode", "buffered", "--fsync-every", "64", "--json")
    run.wait_for("waiting for ")
    run.terminate_twice()
    code, out = run.end()
    assert disk.frozen
    assert code == 128 + signal.SIGTERM
    assert json.loads(out)["outstanding"] != []


# ---------------------------------------------------------------------------------------------- within a process


def writing(disk: StallingDisk, backend: str, **settings: Any) -> tuple[JobSpec, Permissions]:
    knobs = Knobs(queue_depth=4, read_pct=0)
    job = JobSpec((TargetSpec(disk.device),), knobs, backend=Backend(backend), **settings)
    return job, Permissions(frozenset({disk.device}), destroy_data=True)


def wait_until_named(control: LoadControl) -> tuple[Outstanding, ...]:
    deadline_s = time.monotonic() + 10
    while not control.status.outstanding:
        assert time.monotonic() < deadline_s, "nothing is named"
        time.sleep(0.02)
    return control.status.outstanding


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_stop_is_bounded_and_returns_what_is_left(disk: StallingDisk, backend: str) -> None:
    control = LoadControl()
    control.arm(*writing(disk, backend))
    control.start()
    wait_for_writes(disk)
    disk.freeze()
    frozen_ns = time.monotonic_ns()
    (named,) = wait_until_named(control)
    assert (named.target, named.ios) == (disk.device, 4)
    assert abs(named.since_ns - frozen_ns) < 2e9
    began_s = time.monotonic()
    (left,) = control.stop(give_up_s=0.5)
    assert time.monotonic() - began_s < 0.5 + PROMPT_S
    assert (left.target, left.ios) == (disk.device, 4)
    assert control.status.state is LoadState.FAILED
    result = control.result()
    assert result is not None
    assert [each.ios for each in result.outstanding] == [4]
    assert result.ended_in_stall
    disk.thaw()
    control.close()


def test_a_stop_that_waits_ends_when_it_is_abandoned(disk: StallingDisk) -> None:
    control = LoadControl()
    control.arm(*writing(disk, "threads", give_up_s=600.0))
    control.start()
    wait_for_writes(disk)
    disk.freeze()
    wait_until_named(control)
    stopping = threading.Thread(target=control.stop, daemon=True)
    stopping.start()
    time.sleep(0.5)
    assert stopping.is_alive()
    control.abandon()
    stopping.join(PROMPT_S)
    assert not stopping.is_alive()
    assert [each.ios for each in control.outstanding] == [4]
    disk.thaw()
