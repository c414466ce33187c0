"""Several unlike loads at once as a real process: figures of each and of all, flows, signals, failures."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from engine.config import SCRATCH_ENV
from tests import needs
from tests.kernel.forked_command import Forked, lunscope

MIB = 1 << 20
PATIENCE_S = 60
GLOBAL = "[global]\nioengine=io_uring\ndirect=1\n"

MakeLoop = Callable[..., str]
pytestmark = [needs.root, needs.loop, needs.io_uring]


def run(job: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    folders = {"XDG_STATE_HOME": str(job.parent / "state"), SCRATCH_ENV: str(job.parent / "scratch")}
    done = lunscope("run", job, "--headless", "--tier", "kernel", *arguments, env=os.environ | folders)
    assert "Traceback" not in done.stderr
    return done


def measured(job: Path, *arguments: str) -> dict[str, Any]:
    done = run(job, "--json", *arguments)
    assert (done.returncode, done.stdout.count("\n")) == (0, 1), done.stderr
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def fio(folder: Path, text: str) -> Path:
    path = folder / "job.fio"
    path.write_text(GLOBAL + text)
    return path


def test_each_load_does_what_its_section_says(make_loop: MakeLoop, tmp_path: Path) -> None:
    first, second = make_loop(), make_loop()
    text = f"[small]\nfilename={first}\nrw=randread\nbs=4k\nnumber_ios=2000\niodepth=8\n"
    text += f"[large]\nfilename={second}\nrw=write\nbs=64k\nsize=16m\niodepth=2\n"
    found = measured(fio(tmp_path, text), "--allow-write", second)
    small, large = found["loads"]
    assert (small["name"], small["ended"], small["read"]["ios"], small["write"]["ios"]) == ("small", "size", 2000, 0)
    assert (large["name"], large["ended"], large["read"]["ios"], large["write"]["ios"]) == ("large", "size", 0, 256)
    assert (found["read"]["ios"], found["write"]["ios"], found["total"]["ios"]) == (2000, 256, 2256)
    assert found["total"]["bytes"] == 2000 * 4096 + 16 * MIB
    assert (found["ended"], found["targets"]) == ("size", [first, second])
    assert found["job"]["knobs"]["queue_depth"] is None
    assert found["job"]["knobs"]["mode"] == "direct"


def test_loads_that_share_a_device_both_write_to_it(make_loop: MakeLoop, tmp_path: Path) -> None:
    target = make_loop()
    text = f"filename={target}\nrw=write\nsize=8m\n[a]\nbs=4k\n[b]\nbs=64k\noffset=32m\n"
    job = fio(tmp_path, text)
    assert "[a] " in run(job).stderr
    assert "add --allow-write" in run(job).stderr
    found = measured(job, "--allow-write", target)
    assert [load["write"]["bytes"] for load in found["loads"]] == [8 * MIB, 8 * MIB]
    written = Path(target).read_bytes()
    assert any(written[:4096])
    assert any(written[32 * MIB : 32 * MIB + 4096])
    assert not any(written[8 * MIB : 32 * MIB])


def test_loads_share_a_file_that_the_first_of_them_makes(tmp_path: Path) -> None:
    target = tmp_path / "new"
    text = f"filename={target}\nsize=1m\n[a]\nrw=write\nbs=4k\n[b]\nrw=randwrite\nbs=8k\n"
    found = measured(fio(tmp_path, text), "--allow-write", str(target), "--mode", "buffered")
    assert [load["write"]["bytes"] for load in found["loads"]] == [MIB, MIB]


def test_a_verified_target_is_written_by_one_load_only(make_loop: MakeLoop, tmp_path: Path) -> None:
    target = make_loop()
    text = f"filename={target}\nrw=write\nsize=4m\n[a]\nverify=crc32c\nbs=4k\n[b]\nbs=64k\n"
    done = run(fio(tmp_path, text), "--allow-write", target)
    assert done.returncode == 2
    assert f"{target}: [b] writes to it while [a] verifies its data" in done.stderr
    assert not any(Path(target).read_bytes())


def test_two_names_of_the_same_bytes_are_refused(make_loop: MakeLoop, tmp_path: Path) -> None:
    target = make_loop()
    backing = next(tmp_path.glob("*.img"))
    done = run(
        fio(tmp_path, f"[a]\nfilename={target}\nrw=read\nsize=1m\n[b]\nfilename={backing}\nrw=randread\nsize=1m\n")
    )
    assert done.returncode == 2
    assert "are on the same file: give each target once, under one name" in done.stderr


def test_a_verified_load_beside_one_that_reads(make_loop: MakeLoop, tmp_path: Path) -> None:
    target = make_loop()
    text = f"filename={target}\nsize=4m\n[a]\nrw=write\nverify=crc32c\nbs=4k\n[b]\nrw=randread\nbs=64k\n"
    found = measured(fio(tmp_path, text), "--allow-write", target)
    verified, plain = found["loads"]
    assert verified["verify"]["damaged_ranges"] == 0
    assert plain["verify"] is None


# ----------------------------------------------------------------------------------------------------------------- flow


@pytest.mark.parametrize("engine", ["io_uring", "psync\nnumjobs=4"])
def test_a_flow_holds_the_ratio_of_ios(make_loop: MakeLoop, tmp_path: Path, engine: str) -> None:
    """The one that ends by its number of I/Os ends the others, which have issued their part then."""
    first, second = make_loop(), make_loop()
    text = f"rw=randread\nioengine={engine}\ntime_based=0\n"
    text += (
        f"[many]\nfilename={first}\nflow=8\nnumber_ios=8000\nexitall\n[few]\nfilename={second}\nflow=2\nloops=1000\n"
    )
    found = measured(fio(tmp_path, text))
    many, few = (load["total"]["ios"] for load in found["loads"])
    clones = 4 if "psync" in engine else 1
    assert many == clones * 8000
    # Ahead by 1/256 of its part, and what each of its workers had counted at the same moment.
    assert abs(few - clones * 2000) <= 0.01 * clones * 2000 + 8


@needs.fio
def test_fio_holds_the_same_ratio_for_the_same_file(make_loop: MakeLoop, tmp_path: Path) -> None:
    first, second = make_loop(), make_loop()
    text = f"rw=randread\nruntime=60\n[many]\nfilename={first}\nflow=8\nnumber_ios=4000\nexitall\n"
    job = fio(tmp_path, f"{text}[few]\nfilename={second}\nflow=2\nloops=1000\n")
    ours = [load["total"]["ios"] for load in measured(job)["loads"]]
    done = subprocess.run(
        ["fio", "--output-format=json", job], capture_output=True, text=True, check=False, timeout=120
    )
    theirs = [each["read"]["total_ios"] for each in json.loads(done.stdout[done.stdout.index("{") :])["jobs"]]
    assert ours[0] == theirs[0] == 4000
    assert abs(ours[1] - theirs[1]) <= 0.01 * theirs[1] + 8


def test_a_flow_goes_on_when_one_load_ends(make_loop: MakeLoop, tmp_path: Path) -> None:
    first, second = make_loop(), make_loop()
    text = (
        f"rw=randread\nflow=1\n[short]\nfilename={first}\nnumber_ios=100\n[long]\nfilename={second}\nnumber_ios=5000\n"
    )
    found = measured(fio(tmp_path, text))
    assert [load["total"]["ios"] for load in found["loads"]] == [100, 5000]


def test_an_open_loop_beside_a_neighbour(make_loop: MakeLoop, tmp_path: Path) -> None:
    target = make_loop()
    text = f"filename={target}\nruntime=2\ntime_based\n"
    text += "[victim]\nrw=randread\nbs=4k\niodepth=64\nrate_iops=300\nrate_process=poisson\n"
    text += "[neighbour]\nrw=read\nbs=1m\niodepth=8\n"
    found = measured(fio(tmp_path, text))
    victim, neighbour = found["loads"]
    assert (victim["job"]["arrival"], neighbour["job"]["arrival"], found["job"]["arrival"]) == (
        "poisson",
        "closed",
        None,
    )
    assert victim["total"]["service_us"]["p99"] is not None
    assert neighbour["total"]["service_us"] is None
    assert found["skipped"] == victim["skipped"]


# ------------------------------------------------------------------------------------------------- the end of the group


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_all_loads_with_a_summary(make_loop: MakeLoop, tmp_path: Path, number: signal.Signals) -> None:
    first, second = make_loop(), make_loop()
    text = f"time_based\nruntime=600\nrate_iops=200\n[a]\nfilename={first}\nrw=randread\n"
    text += f"[b]\nfilename={second}\nrw=read\nflow=1\n"
    recording = tmp_path / "s.lun"
    words = ("run", fio(tmp_path, text), "--json", "--tier", "kernel", "--record", recording)
    process = Forked(*words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    await_reads(first, second)
    process.send_signal(number)
    out, err = process.communicate(timeout=PATIENCE_S)
    assert (process.returncode, "Traceback" in err) == (128 + number, False)
    found = json.loads(out)
    assert [load["ended"] for load in found["loads"]] == ["stopped", "stopped"]
    assert all(load["total"]["ios"] for load in found["loads"])


def await_reads(*devices: str) -> None:
    until_s = time.monotonic() + PATIENCE_S
    before = [reads(device) for device in devices]
    while any(reads(device) < start + 500 for device, start in zip(devices, before, strict=True)):
        assert time.monotonic() < until_s
        time.sleep(0.05)


def reads(device: str) -> int:
    return int(Path(f"/sys/block/{Path(device).name}/stat").read_text().split()[0])


def test_a_failure_ends_the_others_where_the_file_says_so(make_loop: MakeLoop, tmp_path: Path) -> None:
    healthy, failing = make_loop(), make_loop()
    text = f"runtime=600\ntime_based\n[good]\nfilename={healthy}\nrw=randread\n"
    text += f"[bad]\nfilename={failing}\nrw=randread\nrate_iops_min=1000000000\nexitall_on_error\n"
    done = run(fio(tmp_path, text), "--json")
    assert done.returncode == 1
    assert [load["ended"] for load in json.loads(done.stdout)["loads"]] == ["stopped", "failed"]


def test_a_load_begins_later_and_one_that_never_began_is_nothing_measured(make_loop: MakeLoop, tmp_path: Path) -> None:
    """The parts end by themselves: the third begins a minute after the first of its part has ended it."""
    target = make_loop()
    text = f"filename={target}\nrw=randread\nexitall\n[first]\nnumber_ios=100\n[never]\nstartdelay=60\n"
    text += "[later]\nnew_group\nstartdelay=500ms\nnumber_ios=200\n"
    found = measured(fio(tmp_path, text))
    first, never, later = found["loads"]
    assert [load["total"]["ios"] for load in (first, never, later)] == [100, 0, 200]
    assert 0.5 <= found["elapsed_s"] < 60


def test_a_target_that_is_missing_names_its_section_and_nothing_runs(make_loop: MakeLoop, tmp_path: Path) -> None:
    target = make_loop()
    before = Path(f"/sys/block/{Path(target).name}/stat").read_text().split()[4]
    text = f"rw=write\nsize=1m\n[a]\nfilename={target}\n[b]\nfilename=/dev/nowhere-at-all\nbs=8k\n"
    done = run(fio(tmp_path, text), "--allow-write", target)
    assert (done.returncode, done.stdout) == (2, "")
    assert "[b] /dev/nowhere-at-all" in done.stderr
    assert Path(f"/sys/block/{Path(target).name}/stat").read_text().split()[4] == before


def test_groups_follow_each_other(make_loop: MakeLoop, tmp_path: Path) -> None:
    target = make_loop()
    text = f"filename={target}\nrw=randread\nnumber_ios=300\n[a]\n[b]\nbs=8k\n"
    text += "[c]\nstonewall\n[d]\nstonewall\nbs=16k\n[e]\n"
    done = run(fio(tmp_path, text), "--json")
    assert done.returncode == 0, done.stderr
    found = [json.loads(line) for line in done.stdout.splitlines()]
    names = [[load["name"] for load in each["loads"] or ()] for each in found]
    assert names == [["a", "b"], [], ["d", "e"]]
    assert [each["total"]["ios"] for each in found] == [600, 300, 600]
