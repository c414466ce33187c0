"""What `run` says of the disks under its targets agrees with the load itself, whatever is in between."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import needs
from tests.kernel import forked_command
from tests.kernel.backends import filled_file

MIB = 1 << 20
ROOT = Path(__file__).parents[2]
MakeLoop = Callable[..., str]


def lunscope(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    done = forked_command.lunscope("run", *arguments)
    assert done.returncode == 0, done.stderr
    return done


def document_of(*arguments: str | Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(lunscope(*arguments, "--json").stdout)
    return document


def disk_below(path: Path) -> str:
    """Kernel name of the whole disk that stores a file."""
    number = path.stat().st_dev
    folder = Path("/sys/dev/block", f"{os.major(number)}:{os.minor(number)}")
    if not folder.exists():
        pytest.skip(f"{path} is on a filesystem without a device of its own")
    name = folder.resolve().parent.name if (folder / "partition").exists() else folder.resolve().name
    return name.replace("!", "/")


@needs.loop
def test_a_loop_device_did_what_the_load_did(make_loop: MakeLoop, tmp_path: Path) -> None:
    device = make_loop(16 * MIB, folder=tmp_path)
    document = document_of("-t", device, "--runtime", "1s", "--qd", "4", "--bs", "16k", "--rw", "randread")
    devices = document["devices"]
    assert devices["elapsed_s"] >= 1
    assert devices["samples"] >= 2
    first, *lower = devices["disks"]
    assert (first["name"], first["targets"]) == (Path(device).name, [device])
    (epoch,) = document["epochs"]
    ios = document["total"]["ios"] + epoch["transient_ios"]
    # The samples begin before the first I/O and end after the last; some of them are merged.
    assert first["iops"] * devices["elapsed_s"] == pytest.approx(ios, rel=0.02, abs=20)
    assert first["bytes_per_s"] * devices["elapsed_s"] == pytest.approx(16384 * ios, rel=0.02, abs=MIB)
    assert first["in_flight"] > 0
    assert 0 < first["busy_pct"] <= 100
    assert first["tiers"]["iops"] == "kernel"
    known = {name: first[name] is not None for name in ("queue_ms", "service_ms")}
    assert known == {name: first["tiers"][name] != "none" for name in known}
    assert disk_below(tmp_path) in [disk["name"] for disk in lower]


def test_a_file_is_on_the_disk_of_its_filesystem(tmp_path: Path) -> None:
    path, disk = filled_file(tmp_path / "data", 4 * MIB), disk_below(tmp_path)
    devices = document_of("-t", path, "--runtime", "500ms", "--bs", "64k")["devices"]
    assert disk in [one["name"] for one in devices["disks"]]
    assert all(one["targets"] == [str(path)] for table in ("disks", "paths", "hbas") for one in devices[table])
    assert devices["disks"][0]["reads_per_s"] > 0


@needs.loop
def test_several_jobs_have_figures_of_their_own_time(make_loop: MakeLoop, tmp_path: Path) -> None:
    devices = [make_loop(16 * MIB, folder=tmp_path) for _ in range(2)]
    job = tmp_path / "two.fio"
    common = "[global]\ndirect=1\ntime_based=1\nruntime=1\nrw=randread\nbs=4k\n"
    sections = (f"[job{number}]\nstonewall\nfilename={device}\n" for number, device in enumerate(devices))
    job.write_text(common + "".join(sections))
    for line, device in zip(lunscope(job, "--json").stdout.splitlines(), devices, strict=True):
        document = json.loads(line)
        disk = document["devices"]["disks"][0]
        ios = document["total"]["ios"] + document["epochs"][0]["transient_ios"]
        assert (disk["name"], disk["targets"]) == (Path(device).name, [device])
        assert disk["iops"] * document["devices"]["elapsed_s"] == pytest.approx(ios, rel=0.02, abs=20)


@needs.loop
def test_the_summary_has_them_as_text_and_a_lower_tier_says_less(make_loop: MakeLoop, tmp_path: Path) -> None:
    device = make_loop(16 * MIB, folder=tmp_path)
    lines = lunscope("-t", device, "--headless", "--runtime", "500ms", "--tier", "kernel").stdout.splitlines()
    at = lines.index("Disks:")
    assert lines[at + 1].split() == ["disk", "Q", "S", "await", "Busy", "aqu-sz", "IOPS", "B/s"]
    row = lines[at + 3].split()
    assert row[0] == Path(device).name
    queue = row.index("-")
    assert row[queue + 1] == "-", "the kernel tier does not split"
    assert float(row[queue + 5]) > 0


AS_NOBODY = """
import os, sys, collectors.sources.host_readers, collectors.sources.live, engine.running.driver, pyudev
import collectors.reports.report, collectors.tables.block.averages, collectors.tables.host.facts, tui.commands.run
import collectors.tables.host.reader, email.parser
from tui.cli import run_cli
from tui.headless import runs
os.setgroups([]); os.setgid(65534); os.setuid(65534)
sys.exit(run_cli(sys.argv[1:]))
"""
"""What the user may not read where this Python lives is loaded before the rights are dropped."""


@needs.root
def test_without_rights_they_are_there_with_a_lower_tier(tmp_path: Path) -> None:
    disk_below(tmp_path)
    path = filled_file(tmp_path / "data", 4 * MIB)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o005 != 0o005:  # Of pytest, which closes the outermost for each of its runs.
            folder.chmod(0o755)
    path.chmod(0o644)
    command = [sys.executable, "-c", AS_NOBODY, "run", "--json", "-t", str(path), "--runtime", "500ms"]
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path), "LUNSCOPE_PROBE": str(tmp_path / "no.sock")}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, timeout=120, env=environment)
    assert done.returncode == 0, done.stderr
    devices = json.loads(done.stdout)["devices"]
    assert devices["tier"] in {"kernel", "sampled"}
    assert devices["disks"][0]["iops"] > 0
    assert devices["disks"][0]["tiers"]["queue_ms"] in {"none", "sampled"}
