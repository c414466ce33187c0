"""Preconditioning and the wait for a steady state as real processes, on loop devices."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.config import SCRATCH_ENV
from engine.job.spec import JobSpec, Knobs, Permissions, TargetSpec
from engine.running.control import LoadControl
from tests import needs
from tests.kernel import forked_command
from tests.kernel.conftest import Storage
from tests.kernel.throttle import slowed, throttle
from tests.kernel.trial_files import wait_for_trials
from tests.unit.documents.printed import unwrapped

ROOT = Path(__file__).parents[2]
MIB = 1 << 20
SIZE = 16 * MIB
Lunscope = Callable[..., subprocess.CompletedProcess[str]]


def started(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tui", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL,
        text=True,
        cwd=ROOT,
        env={**os.environ, SCRATCH_ENV: str(tmp_path / "scratch")},
    )


@pytest.fixture
def lunscope(tmp_path: Path) -> Lunscope:
    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, SCRATCH_ENV: str(tmp_path / "scratch")}
        done = forked_command.lunscope(arguments[0], "--tier", "kernel", *arguments[1:], env=environment, timeout_s=300)
        assert "Traceback" not in done.stderr
        return done

    return call


class Writes:
    """Bytes written to a device from now on (Documentation/block/stat.rst: the seventh field, in sectors)."""

    def __init__(self, device: str) -> None:
        self._stat = Path("/sys/block", Path(device).name, "stat")
        self._before = self._total()

    def _total(self) -> int:
        return 512 * int(self._stat.read_text().split()[6])

    @property
    def bytes(self) -> int:
        return self._total() - self._before


@needs.root
@needs.loop
def test_all_of_a_device_is_written_twice_and_none_of_it_is_in_the_result(storage: Storage, lunscope: Lunscope) -> None:
    device, other = storage.loop(SIZE), storage.loop(2 * SIZE)
    writes = {path: Writes(path) for path in (device, other)}
    targets = ("--target", device, "--target", other, "--allow-write", device, "--allow-write", other)
    done = lunscope("run", "--precondition", *targets, "--runtime", "1s", "--json")
    assert done.returncode == 0
    document: dict[str, Any] = json.loads(done.stdout)
    for path, size in ((device, SIZE), (other, 2 * SIZE)):
        assert 2 * size <= writes[path].bytes < 2.1 * size
        assert all(any(chunk) for chunk in _chunks(path))
        assert f"writes 2 x {size >> 20} MiB = {size >> 19} MiB to {path}, 128k in sequence" in done.stderr
    assert document["preconditioned"]["passes"] == 2
    assert document["preconditioned"]["written_bytes"] >= 6 * SIZE
    assert document["write"]["ios"] == 0
    assert document["read"]["ios"] > 0
    assert document["elapsed_s"] < 60
    before, after = done.stderr.index("takes "), done.stderr.index("preconditioning: done after")
    assert before < after


def _chunks(path: str) -> list[bytes]:
    content = Path(path).read_bytes()
    return [content[start : start + 4096] for start in range(0, len(content), 4096)]


@needs.root
@needs.loop
@pytest.mark.parametrize("verb", [("run",), ("sweep", "--vary", "qd=1,2"), ("sweep", "--slo", "p99<=1s")])
@pytest.mark.parametrize("allowed", [(), ("--allow-write", "/dev/null"), ("--destroy-data",)])
def test_nothing_is_written_without_the_permission_for_that_name(
    storage: Storage, lunscope: Lunscope, verb: tuple[str, ...], allowed: tuple[str, ...]
) -> None:
    device = storage.loop(SIZE)
    writes = Writes(device)
    done = lunscope(*verb, "--headless", "--precondition", "--target", device, *allowed)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr.splitlines()[-1]
        == f"lunscope: {device}: --precondition overwrites it 2 times: allow it with --allow-write {device}"
    )
    assert writes.bytes == 0


@needs.root
@needs.loop
@needs.mkfs_ext4
def test_the_guard_refuses_as_it_does_for_any_load_that_writes(storage: Storage, lunscope: Lunscope) -> None:
    device = storage.mkfs(storage.loop(SIZE))
    writes = Writes(device)
    asked = ("run", "--headless", "--precondition", "--target", device, "--allow-write", device)
    done = lunscope(*asked)
    assert done.returncode == 2
    assert "carries: " in done.stderr
    assert writes.bytes == 0
    storage.mount(device)
    writes = Writes(device)
    done = lunscope(*asked, "--destroy-data")
    assert done.returncode == 2
    assert "is mounted on" in done.stderr
    assert "preconditioning: writes" not in done.stderr
    assert writes.bytes < MIB  # of the filesystem itself


@needs.root
@needs.loop
def test_what_is_wrong_with_the_load_is_said_before_anything_is_written(storage: Storage, lunscope: Lunscope) -> None:
    device = storage.loop(SIZE)
    writes = Writes(device)
    load = ("--rw", "read", "--streams", "64", "--bs", "1m")
    done = lunscope("run", "--headless", "--precondition", "--target", device, "--allow-write", device, *load)
    assert done.returncode == 2
    assert "streams" in done.stderr
    assert writes.bytes == 0


@needs.root
@needs.loop
def test_a_sweep_begins_after_it(storage: Storage, tmp_path: Path) -> None:
    device, trials = storage.loop(SIZE), tmp_path / "trials"
    writes = Writes(device)
    options = ("--precondition", "--target", device, "--allow-write", device, "--trials", str(trials), "--json")
    process = started(tmp_path, "sweep", "--vary", "qd=1,2", "--rate", "500", "--tier", "kernel", *options)
    wait_for_trials(process, trials, 1)
    assert 2 * SIZE <= writes.bytes < 2.1 * SIZE
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=120)
    assert "preconditioning: done after" in errors
    assert json.loads(output)["curves"][0]["trials"][0]["load"] == 1
    assert writes.bytes < 2.1 * SIZE


@pytest.mark.waits
@throttle
@needs.loop
def test_a_signal_ends_it_and_nothing_is_measured(storage: Storage, tmp_path: Path) -> None:
    device = storage.loop(SIZE)
    writes = Writes(device)
    options = ("--headless", "--precondition", "--target", device, "--allow-write", device)
    with slowed(device, 20):
        process = started(tmp_path, "run", *options)
        _wait_until(lambda: writes.bytes > 0)
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=120)
    assert (process.returncode, output) == (130, "")
    assert errors.splitlines()[-1] == "lunscope: preconditioning: load stopped: nothing is measured"
    assert writes.bytes < 2 * SIZE


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline_s, "never came"
        time.sleep(0.05)


@needs.root
@needs.loop
@needs.io_uring
def test_a_device_can_be_claimed_again_right_after_a_load(storage: Storage) -> None:
    device = storage.loop(SIZE)
    control = LoadControl()
    job = JobSpec((TargetSpec(device),), Knobs(read_pct=0.0, queue_depth=8))
    try:
        for _ in range(10):
            control.arm(job, Permissions(frozenset({device})))
            control.start()
            control.stop()
    finally:
        control.close()


def test_a_run_ends_once_it_is_steady(lunscope: Lunscope) -> None:
    even = ("--think", "20ms", "--steady-round", "1s", "--size", "4m")
    done = lunscope("run", "--until-steady", "--runtime", "2m", *even, "--json")
    document = json.loads(done.stdout)
    steady = document["steady_state"]
    assert (done.returncode, document["ended"]) == (0, "steady")
    assert steady["reached"] is True
    assert steady["reached_at_round"] == steady["rounds"] >= 5
    assert document["elapsed_s"] < 120
    (window,) = steady["windows"]
    assert window["direction"] == "read"
    assert len(window["values"]) == 5
    assert "steady_state" in {badge["id"] for badge in document["badges"]}


def test_a_run_that_is_not_steady_in_time_says_so_and_fails(lunscope: Lunscope) -> None:
    done = lunscope("run", "--headless", "--until-steady", "--runtime", "3s", "--size", "4m")
    assert done.returncode == 1
    text = unwrapped(done.stdout)
    assert "--until-steady: no steady state within 3 s: give a longer --runtime" in text
    assert ": steady state (SNIA) not checked: too short: it takes 5 rounds of 1m (--steady-round)" in text


@needs.root
@needs.loop
def test_short_writes_to_a_device_that_does_not_rotate_are_said_to_be_too_short(
    storage: Storage, lunscope: Lunscope
) -> None:
    device = storage.loop(SIZE)
    rotates = Path("/sys/block", Path(device).name, "queue/rotational").read_text().strip() != "0"
    options = ("run", "--runtime", "1s", "--target", device, "--json")
    written = json.loads(lunscope(*options, "--rw", "randwrite", "--allow-write", device).stdout)
    read = json.loads(lunscope(*options, "--rw", "randread").stdout)
    ids = [[badge["id"] for badge in document["badges"]] for document in (written, read)]
    assert ["steady_state" in each for each in ids] == [not rotates, False]
    assert written["steady_state"]["reached"] is None


def test_a_fio_file_with_steadystate_is_driven_by_the_rule_of_snia(tmp_path: Path, lunscope: Lunscope) -> None:
    file = tmp_path / "steady.fio"
    data = tmp_path / "data"
    data.write_bytes(os.urandom(MIB))
    section = f"filename={data}\nrw=randread\nthinktime=20ms\nsteadystate=iops:5%\nss_dur=5\nruntime=2m\ntime_based\n"
    file.write_text(f"[one]\n{section}[two]\nstonewall\n{section}")
    refused = lunscope("run", str(file), "--headless")
    assert refused.returncode == 2
    assert "of the SNIA rule: lunscope run FILE --section one" in refused.stderr.replace(str(file), "FILE")
    driven = lunscope("run", str(file), "--section", "two", "--json")
    assert "steadystate=iops:5%: it ends by the SNIA rule over 5 rounds of 1s" in driven.stderr
    assert (driven.returncode, json.loads(driven.stdout)["ended"]) == (0, "steady")


def test_a_load_that_ends_by_its_bytes_is_summed_up(lunscope: Lunscope) -> None:
    done = lunscope("run", "--headless", "--size", "4m", "--io-size", "1m", "--rw", "read")
    assert done.returncode == 0
    assert "(all bytes transferred)" in done.stdout
