"""What is said of runs on real devices whose limit is known."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests import needs
from tests.kernel.forked_command import lunscope
from tests.kernel.throttle import slowed, throttle
from tests.kernel.tracing import queue_set

MIB = 1 << 20
ROOT = Path(__file__).parents[2]
MakeLoop = Callable[..., str]


def run(*arguments: str) -> str:
    done = lunscope("run", "--tier", "kernel", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def findings_of(*arguments: str) -> dict[str, dict[str, Any]]:
    """What is said, by kind."""
    return _by_kind(run(*arguments, "--json"))


def _by_kind(document: str) -> dict[str, dict[str, Any]]:
    return {each["kind"]: each for each in json.loads(document)["findings"]}


def evidence(finding: dict[str, Any]) -> dict[str, float]:
    return {each["name"]: each["value"] for each in finding["evidence"]}


@needs.loop
def test_one_io_at_a_time_is_its_own_limit(make_loop: MakeLoop, tmp_path: Path) -> None:
    device = make_loop(16 * MIB, folder=tmp_path)
    found = findings_of("-t", device, "--runtime", "2s", "--qd", "1", "--bs", "64k")
    depth = found["own_depth"]
    assert (depth["section"], depth["about"]) == ("limit", [device])
    elsewhere = {"host_cpu", "above_device"} & found.keys()
    assert depth["confidence"] == ("hint" if elsewhere else "likely")
    assert evidence(depth)["QD"] == 1
    assert 0.8 <= evidence(depth)["outstanding"] <= 1.01
    assert 0 < evidence(depth)[f"outstanding on {Path(device).name}"] <= 1.25


@needs.loop
@throttle
def test_a_limit_of_the_control_group_is_above_the_device(make_loop: MakeLoop, tmp_path: Path) -> None:
    device = make_loop(16 * MIB, folder=tmp_path)
    words = ("-t", device, "--runtime", "4s", "--qd", "4", "--json")
    with slowed(device, 100):
        # A child of this process, as the limit is on its control group.
        command = [sys.executable, "-m", "tui", "run", "--tier", "kernel", *words]
        found = _by_kind(subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout)
    above = found["above_device"]
    assert (above["section"], above["about"]) == ("limit", [Path(device).name])
    figures = evidence(above)
    # Little's law: 4 I/Os at 100 per second take 40 ms.
    assert figures["latency"] > 20 > figures["await"]
    assert above["confidence"] == ("hint" if "host_cpu" in found else "likely")


@needs.loop
def test_two_files_of_one_disk_and_unused_targets_are_named_in_the_text(make_loop: MakeLoop, tmp_path: Path) -> None:
    devices = [make_loop(16 * MIB, folder=tmp_path) for _ in range(2)]
    targets = [word for device in devices for word in ("-t", device)]
    lines = run("--headless", *targets, "--runtime", "2s", "--qd", "2", "--stripe-width", "1").splitlines()
    at = next(place for place, line in enumerate(lines) if line.startswith("- advice: the load is on 1 of 2 targets"))
    below = lines.index("  stripe width 1; targets 2")
    assert " ".join(lines[at:below]).endswith("(certain)")
    assert lines.index("[Devices under the targets]") < at


@needs.loop
def test_accounting_off_and_the_command_that_turns_it_on(make_loop: MakeLoop, tmp_path: Path) -> None:
    device = make_loop(16 * MIB, folder=tmp_path)
    setting = Path("/sys/block", Path(device).name, "queue/iostats")
    setting.write_text("0")
    found = findings_of("-t", device, "--runtime", "1s", "--qd", "2")
    assert found["uncounted"]["confidence"] == "certain"
    words = found["uncounted"]["command"].split()
    assert words[0] == "lunscope"
    environment = {**os.environ, "LUNSCOPE_STATE_DIR": str(tmp_path / "state")}
    assert lunscope(*words[1:], env=environment).returncode == 0
    assert setting.read_text().strip() == "1"
    assert "uncounted" not in findings_of("-t", device, "--runtime", "1s", "--qd", "2")


@needs.loop
@needs.tracer
def test_ios_that_the_device_cuts_and_the_command_that_keeps_them_whole(make_loop: MakeLoop, tmp_path: Path) -> None:
    device = make_loop(64 * MIB, folder=tmp_path)
    drive = ("-t", device, "--runtime", "3s", "--qd", "2", "--bs", "1m", "--tier", "exact")
    with queue_set(device, max_sectors_kb="128"):
        found = findings_of(*drive)
        # Others read small blocks, as whoever looks at a new device.
        assert 4 < evidence(found["split"])["requests per I/O"] <= 8.05
        assert found["split"]["command"] == f"lunscope tune set max_sectors_kb=1024 --on {Path(device).name} --keep"
    with queue_set(device, max_sectors_kb="1024"):
        assert "split" not in findings_of(*drive)


@needs.loop
def test_a_depth_above_the_requests_of_the_queue(make_loop: MakeLoop, tmp_path: Path) -> None:
    device = make_loop(16 * MIB, folder=tmp_path)
    setting = Path("/sys/block", Path(device).name, "queue/nr_requests")
    setting.write_text("8")
    found = findings_of("-t", device, "--runtime", "2s", "--qd", "32")
    assert evidence(found["few_requests"])["nr_requests"] == 8
    assert evidence(found["few_requests"])["QD on it"] == 32
    assert found["few_requests"]["command"] == f"lunscope tune set nr_requests=32 --on {Path(device).name} --keep"
    setting.write_text("64")
    assert "few_requests" not in findings_of("-t", device, "--runtime", "2s", "--qd", "32")
