"""`lunscope run` as a real process: summaries, signals at any moment, and what it says to bad input."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from collectors.session.reader import SessionReader
from engine.config import SCRATCH_ENV
from tests import needs
from tests.kernel.backends import eventually
from tests.kernel.forked_command import Forked, lunscope

COMMAND = [sys.executable, "-m", "tui", "run"]
ROOT = Path(__file__).parents[2]


@pytest.fixture
def scratch(tmp_path: Path) -> Path:
    return tmp_path / "scratch"


@pytest.fixture
def run(scratch: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def call(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        done = lunscope("run", "--tier", "kernel", *arguments, env=os.environ | {SCRATCH_ENV: str(scratch)})
        assert "Traceback" not in done.stderr
        assert not scratch.exists() or list(scratch.iterdir()) == []
        return done

    return call


Run = Callable[..., subprocess.CompletedProcess[str]]


def filled(path: Path, size_bytes: int = 1 << 20) -> Path:
    path.write_bytes(os.urandom(size_bytes))
    return path


# ------------------------------------------------------------------------------------------------------- good runs


def test_json_is_one_document_on_stdout_and_nothing_else(run: Run) -> None:
    done = run("--json", "--runtime", "1s", "--size", "4m", "--qd", "4", "--stripe-width", "2", "--rw", "randrw")
    assert (done.returncode, done.stderr) == (0, "")
    document = json.loads(done.stdout)
    assert document["schema"] == "lunscope.run/1"
    assert document["ended"] == "runtime"
    assert len(document["targets"]) == 2
    (epoch,) = document["epochs"]
    assert epoch["knobs"]["queue_depth"] == 4
    assert document["total"]["ios"] == epoch["read"]["ios"] + epoch["write"]["ios"] > 0
    assert all(target["total"]["ios"] for target in epoch["targets"])


def test_without_a_terminal_it_runs_without_a_screen(run: Run) -> None:
    done = run("--runtime", "100ms", "--size", "4m")
    assert (done.returncode, done.stderr) == (0, "")
    assert "scratch 1" in done.stdout


def test_a_recording_holds_load_and_devices_up_to_the_last_io(run: Run, tmp_path: Path) -> None:
    session = tmp_path / "run.lun"
    arguments = ("--json", "--runtime", "700ms", "--size", "4m", "--qd", "2", "--interval", "0.2", "--record", session)
    done = run(*arguments)
    assert done.returncode == 0, done.stderr
    reader = SessionReader(session)
    samples = [step.current for step in reader.steps(0, len(reader))]
    reader.close()
    loads = [sample.tables["load"] for sample in samples if "load" in sample.tables]
    assert len(loads) >= 2
    assert "disk" in samples[-1].tables
    document = json.loads(done.stdout)
    recorded = int((loads[-1].column("read_ios") + loads[-1].column("write_ios")).sum())
    assert recorded >= document["total"]["ios"] + document["epochs"][0]["transient_ios"]
    texts = [event.text for sample in samples for event in sample.events]
    assert any(text.startswith("load started") for text in texts)
    assert any(text.startswith("load finished") for text in texts)
    again = run(*arguments)
    assert (again.returncode, again.stdout) == (2, "")
    assert run(*arguments, "--overwrite").returncode == 0


# ------------------------------------------------------------------------------------------------------- bad input


def refused(done: subprocess.CompletedProcess[str], words: str, code: int | None = None) -> None:
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.startswith("lunscope: ")
    assert words in done.stderr
    assert done.returncode == code if code is not None else done.returncode in {1, 2}


def test_a_target_smaller_than_asked_for_or_given_twice_is_refused(run: Run, tmp_path: Path) -> None:
    file = filled(tmp_path / "file")
    other = tmp_path / "other"
    other.symlink_to(file)
    refused(run("--target", file, "--size", "2m"), str(file))
    refused(run("--target", file, "--target", other), str(other))
    refused(run("--target", file, "--rw", "randwrite"), f"--allow-write {file}", 2)


AS_NOBODY = """
import os, sys, engine.running.driver, tui.commands.run
from tui.cli import run_cli
os.setgroups([]); os.setgid(65534); os.setuid(65534)
sys.exit(run_cli(sys.argv[1:]))
"""


@needs.root
@needs.loop
def test_a_device_without_permission_is_named(make_loop: Callable[..., str]) -> None:
    device = make_loop(1 << 20)
    command = [sys.executable, "-c", AS_NOBODY, "run", "--headless", "--target", device]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=60)
    refused(done, f"{device}: no right to read it", 2)


def test_names_cannot_steer_the_terminal(run: Run, tmp_path: Path) -> None:
    evil = filled(tmp_path / "a\x1b]0;owned\x07\x1b[31m")
    good = run("--target", evil, "--headless", "--runtime", "100ms")
    bad = run("--target", f"{evil}\x1b[2J")
    assert good.returncode == 0, good.stderr
    assert "\x1b" not in good.stdout + good.stderr + bad.stderr
    assert "\\x1b" in good.stdout


@needs.loop
def test_a_target_that_goes_away_while_running_is_counted_and_the_rest_goes_on(
    make_loop: Callable[..., str], tmp_path: Path
) -> None:
    devices = [make_loop(1 << 20), make_loop(1 << 20)]
    with started("--json", "--runtime", "1s", "--target", devices[0], "--target", devices[1]) as process:
        wait_for_io(process, devices[0])
        os.truncate(next(tmp_path.glob("lunscope-test-0-*.img")), 0)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (1, "")
    document = json.loads(out)
    assert {(error["target"], error["name"]) for error in document["errors"]} == {(devices[0], "EIO")}
    assert document["epochs"][0]["targets"][1]["total"]["ios"] > 0


# --------------------------------------------------------------------------------------------------------- signals


@contextmanager
def started(*arguments: str | Path, **others: Any) -> Iterator[subprocess.Popen[str]]:
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "stdin": subprocess.DEVNULL}
    process = Forked("run", *arguments, **pipes, **others)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_for_io(process: subprocess.Popen[str], device: str) -> None:
    """Wait until the process has the device open and the device served a few reads."""
    stat = Path(f"/sys/block/{Path(device).name}/stat")
    before = int(stat.read_text().split()[0])
    eventually(lambda: has_open(process, device) and int(stat.read_text().split()[0]) > before + 100)


def has_open(process: subprocess.Popen[str], path: str | Path) -> bool:
    """Whether the process, or its child that does the I/O, has a file of this name, or below this folder, open."""
    assert process.poll() is None, process.communicate()
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    for entry in (entry for pid in (process.pid, *children) for entry in Path(f"/proc/{pid}/fd").iterdir()):
        try:
            if str(entry.readlink()).startswith(str(path)):
                return True
        except OSError:
            continue
    return False


ENDINGS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("number", ENDINGS)
def test_a_signal_while_running_gives_the_summary_and_closes_the_session(
    tmp_path: Path, scratch: Path, number: signal.Signals
) -> None:
    session = tmp_path / "run.lun"
    arguments = ("--json", "--runtime", "60s", "--interval", "0.1", "--record", session, "--scratch-dir", scratch)
    with started(*arguments, "--size", "4m") as process:
        eventually(lambda: has_open(process, scratch))
        time.sleep(0.3)
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (128 + number, "")
    assert json.loads(out)["ended"] == "stopped"
    assert list(scratch.iterdir()) == []
    with SessionReader(session) as reader:
        assert reader.complete
        assert reader.notice == ""
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith("run.lun")] == ["run.lun"]


@pytest.mark.parametrize("number", ENDINGS)
def test_a_signal_while_scratch_is_filled_leaves_nothing(scratch: Path, number: signal.Signals) -> None:
    with started("--json", "--size", "1g", "--stripe-width", "4", "--scratch-dir", scratch) as process:
        eventually(lambda: has_open(process, scratch))
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (128 + number, "")
    document = json.loads(out)
    assert (document["ended"], document["epochs"], document["total"]["ios"]) == ("stopped", [], 0)
    assert list(scratch.iterdir()) == []


@pytest.mark.parametrize("seed", range(6))
def test_a_signal_at_any_moment_leaves_nothing(scratch: Path, seed: int) -> None:
    chance = random.Random(seed)
    number = chance.choice(ENDINGS)
    with started("--json", "--size", "32m", "--runtime", "60s", "--scratch-dir", scratch) as process:
        time.sleep(chance.uniform(0, 1.5))
        process.send_signal(number)
        out, err = process.communicate(timeout=30)
    # Before its own handling is in place the kernel ends it.
    assert process.returncode in {128 + number, -number}
    assert "Traceback" not in err
    if out:
        assert json.loads(out)["ended"] == "stopped"
    assert not scratch.exists() or list(scratch.iterdir()) == []


def test_a_third_signal_ends_what_hangs(scratch: Path) -> None:
    with started("--json", "--size", "1g", "--stripe-width", "4", "--scratch-dir", scratch) as process:
        eventually(lambda: has_open(process, scratch))
        process.send_signal(signal.SIGSTOP)
        for number in ENDINGS:
            process.send_signal(number)
        process.send_signal(signal.SIGCONT)
        process.communicate(timeout=30)
    assert -process.returncode in ENDINGS
    assert list(scratch.iterdir()) == []


def test_nohup_is_respected(scratch: Path) -> None:
    ignoring = ["nohup", *COMMAND, "--json", "--size", "4m", "--runtime", "500ms", "--scratch-dir", str(scratch)]
    process = subprocess.Popen(
        ignoring, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True, cwd=ROOT
    )
    eventually(lambda: has_open(process, scratch))
    process.send_signal(signal.SIGHUP)
    out, _ = process.communicate(timeout=30)
    assert process.returncode == 0
    assert json.loads(out)["ended"] == "runtime"


def test_a_reader_that_leaves_early_is_no_trouble(scratch: Path) -> None:
    with started("--json", "--size", "4m", "--runtime", "100ms", "--scratch-dir", scratch) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        assert process.stderr.read() == ""
        assert process.wait(30) == 1
