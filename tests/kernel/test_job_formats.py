"""Job files of other tools driven for real: the same load as the tool itself makes of them."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from collectors.session.reader import SessionReader
from engine.config import SCRATCH_ENV
from engine.events import EventKind
from engine.job.formats.choose import read_job
from tests import needs
from tests.kernel import forked_command

ROOT = Path(__file__).parents[2]
FILE_BYTES = 16 << 20
IO_BYTES = 48 << 20


@dataclass(frozen=True)
class Seen:
    """What a tool says it did."""

    read_share: float
    read_bytes: float
    """Mean size of a read; 0 without any."""
    write_bytes: float
    outstanding: float
    """By Little's law: I/Os per second times the time each took."""
    iops: float


def lunscope(*arguments: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    done = forked_command.lunscope(*arguments, env=os.environ | {SCRATCH_ENV: str(folder / "scratch")})
    assert "Traceback" not in done.stderr
    return done


def by_lunscope(job: Path, *arguments: str | Path) -> Seen:
    done = lunscope("run", job, "--json", "--tier", "kernel", *arguments, folder=job.parent)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    return seen([document["read"], document["write"]], "ios", "bytes", lambda block: block["latency_us"]["mean"] or 0)


def by_fio(job: Path) -> Seen:
    done = subprocess.run(
        ["fio", "--output-format=json", job.name],
        cwd=job.parent,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    jobs = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    blocks = [one[direction] for direction in ("read", "write") for one in jobs]
    return seen(blocks, "total_ios", "io_bytes", lambda block: block["lat_ns"]["mean"] / 1000)


def seen(blocks: list[dict[str, Any]], ios: str, size: str, mean_us: Any) -> Seen:
    half = len(blocks) // 2
    reads, writes = blocks[:half], blocks[half:]
    counts = [sum(block[ios] for block in part) for part in (reads, writes)]
    sizes = [
        sum(block[size] for block in part) / count if count else 0
        for part, count in zip((reads, writes), counts, strict=True)
    ]
    return Seen(
        counts[0] / sum(counts),
        sizes[0],
        sizes[1],
        sum((block["iops"] or 0) * mean_us(block) / 1e6 for block in blocks),
        sum(block["iops"] or 0 for block in blocks),
    )


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data"
    path.write_bytes(os.urandom(FILE_BYTES))
    return path


def job_file(data: Path, lines: str, end: str = "runtime=500ms\ntime_based") -> Path:
    path = data.parent / "job.fio"
    path.write_text(f"[global]\nfilename={data}\ndirect=1\n{end}\nrandrepeat=0\n[a]\n{lines}\n")
    return path


JOBS = [
    ("rw=randread\nioengine=io_uring\niodepth=8", 8),
    ("rw=randrw\nrwmixread=70\nbssplit=4k/60:16k/40\nnorandommap\nioengine=libaio\niodepth=8\nnumjobs=2", 16),
    ("rw=randwrite\nbs=8k\nioengine=psync\nnumjobs=4\nnorandommap", 4),
    ("rw=read\nbs=64k\nioengine=libaio\niodepth=4", 4),
    ("rw=rw\nbs=8k,32k\nioengine=io_uring\niodepth=4", 4),
    ("rw=randread\nbsrange=4kib-16kib\nrandom_distribution=zipf:1.2\nioengine=io_uring\niodepth=16\nkb_base=1000", 16),
]


@pytest.mark.alone
@needs.fio
@needs.io_uring
@pytest.mark.parametrize(("lines", "depth"), JOBS, ids=[lines.replace("\n", " ") for lines, _ in JOBS])
def test_fio_and_lunscope_make_the_same_load_of_a_file(data: Path, lines: str, depth: int) -> None:
    # As many I/Os on a busy host as on an idle one: sizes and shares of fewer would differ by chance.
    job = job_file(data, lines, f"io_size={IO_BYTES}")
    theirs = by_fio(job)
    mine = by_lunscope(job, "--allow-write", data, "--destroy-data")
    assert mine.read_share == pytest.approx(theirs.read_share, abs=0.04)
    assert mine.read_bytes == pytest.approx(theirs.read_bytes, rel=0.06)
    assert mine.write_bytes == pytest.approx(theirs.write_bytes, rel=0.06)
    # Both lose what passes between an I/O that came back and the next, where others have the processors most of it.
    for seen_depth in (theirs.outstanding, mine.outstanding):
        assert depth * 0.3 < seen_depth < depth * 1.1


@pytest.mark.alone
@needs.fio
@needs.io_uring
def test_a_rate_is_the_same_with_both(data: Path) -> None:
    job = job_file(data, "rw=randrw\nrwmixread=70\nrate_iops=700,300\nioengine=io_uring\niodepth=32")
    theirs = by_fio(job)
    mine = by_lunscope(job, "--allow-write", data, "--destroy-data")
    # A rate of each direction or each clone would be twice as far off as a busy machine and its catching up make it.
    for seen_rate in (theirs.iops, mine.iops):
        assert 500 < seen_rate < 1300
    assert mine.read_share == pytest.approx(0.7, abs=0.08)


@pytest.mark.alone
@needs.fio
@needs.io_uring
def test_what_is_written_for_fio_runs_there(data: Path) -> None:
    toml, written = data.parent / "job.toml", data.parent / "out.fio"
    toml.write_text(
        f'target = "{data}"\nrw = "randrw"\nread_pct = 80\nbs = "4k:60,16k:40"\nqd = 8\n'
        'size = "8m"\nruntime = "500ms"\ndistribution = "hot:90/10"\nengine = "uring"\n'
    )
    done = lunscope("run", toml, "--save-job", written, folder=data.parent)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    theirs = by_fio(written)
    assert theirs.read_share == pytest.approx(0.8, abs=0.03)
    assert theirs.read_bytes == pytest.approx(0.6 * 4096 + 0.4 * 16384, rel=0.04)
    assert 8 * 0.6 < theirs.outstanding < 8 * 1.1


def test_jobs_behind_a_stonewall_run_one_after_the_other(data: Path) -> None:
    """Also where they differ in knobs only, and two of them in nothing that names their files."""
    ends = "time_based=0\nruntime=0\nnumber_ios=40\n"
    job = job_file(
        data, f"rw=read\nbs=64k\n{ends}[b]\nstonewall\nrw=randread\n{ends}[c]\nstonewall\nrw=randread\nbs=8k\n{ends}"
    )
    folder = data.parent / "out"
    done = lunscope(
        "run", job, "--json", "--tier", "kernel", "--fio-json", folder, "--interval", "0.1", folder=data.parent
    )
    assert done.returncode == 0, done.stderr
    documents = [json.loads(line) for line in done.stdout.splitlines()]
    ran = [(each["job"]["name"], each["job"]["access"], each["ended"]) for each in documents]
    assert ran == [("a", "sequential", "size"), ("b", "random", "size"), ("c", "random", "size")]
    assert [each["total"]["ios"] for each in documents] == [40, 40, 40]
    written = [json.loads(path.read_text())["jobs"][0] for path in sorted(folder.glob("**/*.json"))]
    assert sorted(one["jobname"] for one in written) == ["a", "b", "c"]
    assert {str(path.relative_to(folder)) for path in folder.glob("**/*.json")} == {
        "read-1-1.json",
        "run-2/randread-1-1.json",
        "run-3/randread-1-1.json",
    }
    chosen = lunscope("run", job, "--section", "b", "--json", folder=data.parent)
    assert json.loads(chosen.stdout)["job"]["name"] == "b"


def test_a_fio_file_that_writes_needs_permission_like_any_other(data: Path) -> None:
    before = data.read_bytes()
    job = job_file(data, "rw=randwrite")
    done = lunscope("run", job, folder=data.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"lunscope: {data}: writing is not allowed: add --allow-write" in done.stderr.splitlines()[-1]
    assert data.read_bytes() == before


def test_a_file_that_one_section_made_may_be_written_by_the_next(tmp_path: Path) -> None:
    """By that run only: in the next one it is an existing file like any other."""
    made, job = tmp_path / "made", tmp_path / "job.fio"
    text = f"[global]\nfilename={made}\nsize=64k\nioengine=psync\n[a]\nrw=read\n[b]\nstonewall\nrw=write\n"
    job.write_text(text + "[c]\nstonewall\nrw=randwrite\n[d]\nrw=read\n")
    done = lunscope("run", job, "--json", "--tier", "kernel", "--allow-write", made, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert [json.loads(line)["total"]["ios"] for line in done.stdout.splitlines()] == [16, 16, 32]
    again = lunscope("run", job, "--json", "--tier", "kernel", "--allow-write", made, folder=tmp_path)
    assert (again.returncode, again.stdout) == (2, "")
    assert "is an existing file of 64 KiB: add --destroy-data" in again.stderr


def test_a_scenario_that_writes_later_is_refused_before_it_begins(data: Path) -> None:
    scenario = data.parent / "s.toml"
    scenario.write_text(
        f'schema = "lunscope.scenario/1"\n[job]\ntarget = "{data}"\nruntime = "9s"\n'
        '[[turn]]\nat = "8s"\nread_pct = 50\n'
    )
    done = lunscope("run", scenario, "--headless", "--tier", "kernel", folder=data.parent)
    assert (done.returncode, done.stdout) == (2, "")
    assert "job writes to it from 8s on" in done.stderr


def test_a_recorded_run_is_run_again_with_the_same_turns(data: Path) -> None:
    folder = data.parent
    first, again, session, second = (folder / name for name in ("s.toml", "again.toml", "r.luns", "r2.luns"))
    first.write_text(
        f'schema = "lunscope.scenario/1"\n[job]\ntarget = "{data}"\nqd = 2\nruntime = "1200ms"\n'
        '[[turn]]\nat = "300ms"\nqd = 8\nbs = "8k"\n[[turn]]\nat = "800ms"\nrate = 200\ndistribution = "zipf:1.2"\n'
    )
    done = lunscope("run", first, "--headless", "--tier", "kernel", "--record", session, folder=folder)
    assert done.returncode == 0, done.stderr
    done = lunscope("export", session, "--format", "scenario", "-o", again, folder=folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (wanted,), (found,) = read_job(first).scenarios, read_job(again).scenarios
    assert found.job == wanted.job
    assert [set(turn.changes) for turn in found.turns] == [set(turn.changes) for turn in wanted.turns]
    done = lunscope("run", again, "--json", "--tier", "kernel", "--record", second, folder=folder)
    assert done.returncode == 0, done.stderr
    epochs = json.loads(done.stdout)["epochs"]
    knobs = [(epoch["knobs"]["queue_depth"], epoch["knobs"]["rate_iops"]) for epoch in epochs]
    assert knobs == [(2, None), (8, None), (8, 200.0)]
    assert [epoch["knobs"]["distribution"] for epoch in epochs] == ["uniform", "uniform", "zipf:1.2"]
    with SessionReader(second) as reader:
        events = [event for event in reader.events() if event.kind in (EventKind.LOAD, EventKind.KNOB)]
    start, *turns, _ = events
    at_s = sorted({event.data["epoch"]: (event.monotonic_ns - start.monotonic_ns) / 1e9 for event in turns}.values())
    # Never too early, and late by no more than a busy machine makes of a wake-up.
    for wanted_s, found_s in zip([turn.at_s for turn in found.turns], at_s, strict=True):
        assert wanted_s <= found_s + 1e-6
        assert found_s < wanted_s + 0.25


def test_steps_of_a_parameter_file_are_epochs(data: Path) -> None:
    job = data.parent / "study.ndisk"
    job.write_text(
        "NBROFPROC -> 1 4 8 - threads\nDURATION -> 0.4\nACCESS -> R\nREADPROBABILITY -> 1.0\n"
        "READLOCALITY -> (0.9 0.1)\nRECSIZE -> 8192\nRESPONSETIME -> 10 0.000001\n"
    )
    done = lunscope("run", job, "--target", data, "--headless", folder=data.parent)
    assert done.returncode == 0, done.stderr
    assert "8k, read, QD 1, stripe width 1, hot:90/50" in done.stdout
    assert all(f"qd={depth}" in done.stdout for depth in (4, 8))
    lines = [line.split() for line in done.stdout.splitlines()]
    at = lines.index(["QD", "<=1us", "<=10s"])
    assert lines[at + 2 : at + 6] == [[depth, "0.00", "100.00"] for depth in ("1", "4", "8", "all")]


@needs.loop
def test_a_published_parameter_file_runs_as_it_stands(make_loop: Callable[..., str], tmp_path: Path) -> None:
    # In memory: where other writes hold a disk up for longer than a step, that step has no I/Os to be judged.
    devices = [make_loop(16 << 20, folder=Path("/dev/shm")) for _ in range(4)]
    job = tmp_path / "study.ndisk"
    job.write_text(
        "NBROFPROC ->1 4 8 24 - threads, one step each\nDURATION  -> 0.5 - seconds per step\nACCESS    -> R\n"
        "RESPONSETIME -> 0.005 0.010 0.015 0.020 0.030 0.050 0.100 0.200 - s\nBUCKETS      -> .002 .005 .010 - s\n"
        "READPROBABILITY -> 0.70\nREADLOCALITY -> (0.5 0.5)\nWRITELOCALITY ->(0.33 0.33 0.34)\n"
        "* RECPERTRK -> 1000\nSECPERTRK   -> 128\nRECSIZE    -> 4096 - bytes\nPDEV       -> 240\nNBROFDEV   -> 240\n"
    )
    targets = [word for device in devices for word in ("--target", device, "--allow-write", device)]
    done = lunscope("run", job, *targets, "--destroy-data", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    epochs, times = document["epochs"], document["response_times"]
    assert [epoch["knobs"]["queue_depth"] for epoch in epochs] == [1, 4, 8, 24]
    for epoch, shares in zip(epochs, times["epochs"], strict=True):
        assert all(target["total"]["ios"] for target in epoch["targets"])
        assert epoch["total"]["ios"] == pytest.approx(sum(one["ios"] for one in shares["buckets"]), abs=4)
        # Little's law, without the I/Os that began before the epoch.
        latency, depth = epoch["total"]["latency_us"], epoch["knobs"]["queue_depth"]
        total_us = epoch["total"]["ios"] * latency["mean"] - depth * latency["max"]
        assert total_us / 1e6 <= depth * epoch["duration_s"]
    assert [one["limit_s"] for one in times["within"]] == [0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2]
    shares = [one["pct"] for one in times["within"]]
    assert shares == sorted(shares)


def keys_of(value: object, at: str = "") -> set[str]:
    """Every key of a document, of lists those of the first element; the names of buckets and options left out."""
    if isinstance(value, list):
        return keys_of(value[0], at) if value else set()
    if not isinstance(value, dict) or at.endswith(("bins", "options")):
        return set()
    return {f"{at}/{name}" for name in value}.union(*(keys_of(one, f"{at}/{name}") for name, one in value.items()))


@needs.fio
def test_every_key_that_fio_writes_is_there(data: Path) -> None:
    job, folder = job_file(data, "rw=randrw\nruntime=1500ms\nioengine=psync"), data.parent / "out"
    command = ["fio", "--output-format=json+", job.name]
    theirs = subprocess.run(command, cwd=data.parent, capture_output=True, text=True, check=True, timeout=60).stdout
    arguments = ("--interval", "0.2", "--tier", "kernel", "--allow-write", data, "--destroy-data")
    done = lunscope("run", job, "--fio-json", folder, *arguments, folder=data.parent)
    assert done.returncode == 0, done.stderr
    mine = json.loads((folder / "randrw-1-1.json").read_text())
    assert keys_of(json.loads(theirs[theirs.index("{") :])) - keys_of(mine) == set()
    (one,) = mine["jobs"]
    for figures in (one["read"], one["write"]):
        assert sum(figures["clat_ns"]["bins"].values()) == figures["clat_ns"]["N"] == figures["total_ios"]
    log = (folder / "randrw-iodepth-1-numjobs-1_clat_hist.1.log").read_text().splitlines()
    rows = [[int(cell) for cell in line.split(", ")] for line in log]
    assert {(row[1], row[2], len(row)) for row in rows} == {(0, 4096, 1859), (1, 4096, 1859)}
    assert sum(sum(row[3:]) for row in rows) > 0


def test_results_are_what_fio_plot_reads(data: Path) -> None:
    folder, scenario = data.parent / "out", data.parent / "s.toml"
    scenario.write_text(
        f'schema = "lunscope.scenario/1"\n[job]\ntarget = "{data}"\nqd = 1\nruntime = "4s"\n'
        '[[turn]]\nat = "2s"\nqd = 8\n'
    )
    # Two samples of each half are wanted, also from a host that gives this process little time.
    arguments = ("run", scenario, "--interval", "0.1", "--fio-json", folder)
    done = lunscope(*arguments, "--json", folder=data.parent)
    assert (done.returncode, done.stderr) == (0, "")
    epochs = json.loads(done.stdout)["epochs"]
    logs = {
        f"randread-iodepth-{depth}-numjobs-1_{what}.1.log"
        for depth in (1, 8)
        for what in ("bw", "iops", "lat", "clat_hist")
    }
    assert {path.name for path in folder.iterdir()} == {"randread-1-1.json", "randread-8-1.json", *logs}
    for epoch, depth in zip(epochs, (1, 8), strict=True):
        (job,) = json.loads((folder / f"randread-{depth}-1.json").read_text())["jobs"]
        assert (job["job options"]["iodepth"], job["job options"]["bs"]) == (str(depth), "4k")
        assert job["read"]["total_ios"] == epoch["read"]["ios"]
        assert job["read"]["iops"] == pytest.approx(epoch["read"]["iops"])
        assert job["read"]["lat_ns"]["mean"] / 1000 == pytest.approx(epoch["read"]["latency_us"]["mean"], rel=1e-3)
        shares = [sum(job[table].values()) for table in ("latency_ns", "latency_us", "latency_ms")]
        assert sum(shares) == pytest.approx(100)
        assert job["sys_cpu"] > 0
        lines = (folder / f"randread-iodepth-{depth}-numjobs-1_iops.1.log").read_text().splitlines()
        rates = [int(line.split(", ")[1]) for line in lines]
        assert len(rates) >= 2
        assert min(rates) - 1 <= job["read"]["iops_mean"] <= max(rates) + 1
    again = lunscope(*arguments, folder=data.parent)
    assert (again.returncode, again.stdout) == (2, "")
    assert "has results already: name another folder, or remove randread-1-1.json" in again.stderr
