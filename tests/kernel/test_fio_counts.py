"""Job files as people write them: fio and lunscope transfer the same bytes to the same places, I/O for I/O."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from engine.config import SCRATCH_ENV
from engine.job.formats.fio_file import read_fio
from tests import needs
from tests.kernel.forked_command import lunscope

ROOT = Path(__file__).parents[2]
JOBS = ROOT / "tests" / "fio_jobs"
FILE_BYTES = 16 << 20
BLOCK_BYTES = 1024
ENDS_BY_BYTES = (
    *(
        "after-the-fill",
        "backwards",
        "clones-on-one-sequence",
        "clones-side-by-side",
        "files-of-its-own",
        "four-phases",
    ),
    *("half-blocks", "less-than-size", "more-than-size", "no-slower", "pages", "quarter"),
    *("second-half",),
    *("small-share-of-a-file", "so-many-ios", "two-passes", "unlike-jobs-at-once", "held-together"),
)
VISITS_ARE_KNOWN = (
    *("backwards", "clones-on-one-sequence", "clones-side-by-side", "less-than-size", "more-than-size", "pages"),
    *("quarter", "second-half", "so-many-ios", "two-passes"),
)
DIRECTIONS = ("read", "write")
Counts = dict[str, tuple[int, int]]
"""I/Os and bytes by direction."""


@pytest.fixture(scope="module")
def content() -> bytes:
    return os.urandom(FILE_BYTES)


@pytest.fixture
def data(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "data"
    path.write_bytes(content)
    return path


def by_fio(job: Path, data: Path) -> list[dict[str, Any]]:
    done = subprocess.run(
        ["fio", "--output-format=json", job],
        cwd=data.parent,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, "DATA": data.name},
    )
    jobs: list[dict[str, Any]] = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    return jobs


def by_lunscope(job: Path, data: Path) -> list[dict[str, Any]]:
    environment = {**os.environ, "DATA": str(data), SCRATCH_ENV: str(data.parent / "scratch")}
    done = lunscope("run", job, "--json", "--tier", "kernel", "--allow-write", data, "--destroy-data", env=environment)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def total(documents: list[dict[str, Any]], ios: str, size: str) -> Counts:
    return {
        direction: (
            sum(document[direction][ios] for document in documents),
            sum(document[direction][size] for document in documents),
        )
        for direction in DIRECTIONS
    }


def places(data: Path) -> list[int]:
    """Where a file of zeros was written to."""
    blocks = np.fromfile(data, np.uint8).reshape(-1, BLOCK_BYTES)
    written: list[int] = (np.flatnonzero(blocks.any(axis=1)) * BLOCK_BYTES).tolist()
    return written


def counted_by_fio(job: Path, data: Path) -> Counts:
    return total(by_fio(job, data), "total_ios", "io_bytes")


def counted_by_lunscope(job: Path, data: Path) -> Counts:
    return total(by_lunscope(job, data), "ios", "bytes")


@needs.fio
@needs.io_uring
@pytest.mark.parametrize("name", sorted({*ENDS_BY_BYTES} - {*VISITS_ARE_KNOWN}))
def test_both_transfer_the_same(data: Path, name: str) -> None:
    job = JOBS / f"{name}.fio"
    theirs, mine = counted_by_fio(job, data), counted_by_lunscope(job, data)
    if name == "half-blocks":
        # Sizes are drawn. The last I/O of ours fits the rest; that of fio does where the end of the file makes it.
        wanted = 2 << 20
        assert mine["read"][1] == wanted
        assert wanted <= theirs["read"][1] < wanted + 8192
        assert mine["read"][0] == pytest.approx(theirs["read"][0], rel=0.15)
    else:
        assert mine == theirs


@needs.fio
def test_both_end_a_job_below_its_least_rate_with_an_error(data: Path, tmp_path: Path) -> None:
    """A thinktime of 50 ms is 20 IOPS at most: after 2 s to settle, one cycle of 1 s says so."""
    job = tmp_path / "slow.fio"
    job.write_text("[slow]\nfilename=${DATA}\nrw=randread\nthinktime=50ms\nrate_iops_min=100\nruntime=50\ntime_based\n")
    environment = {**os.environ, "DATA": data.name}
    pipe = subprocess.PIPE
    with subprocess.Popen(["fio", job], cwd=data.parent, stdout=pipe, stderr=pipe, env=environment) as theirs:
        mine = lunscope("run", job, "--json", "--tier", "kernel", env=os.environ | {"DATA": str(data)})
        said = b"".join(theirs.communicate(timeout=120))
    assert (theirs.returncode, mine.returncode) == (1, 1), mine.stderr
    assert b"rate_iops_min=100 not met" in said
    document = json.loads(mine.stdout)
    assert document["ended"] == "failed"
    assert document["failure"].endswith("below the 100 IOPS of --rate-min")
    assert document["elapsed_s"] < 50
    assert document["errors"] == []


@needs.fio
@needs.io_uring
@pytest.mark.parametrize("name", VISITS_ARE_KNOWN)
def test_both_transfer_the_same_to_the_same_places(data: Path, name: str) -> None:
    """Reads are made writes, which leave traces."""
    job = data.parent / f"{name}.fio"
    text = (JOBS / f"{name}.fio").read_text()
    job.write_text(text.replace("rw=read", "rw=write").replace("rw=randread", "rw=randwrite"))
    touched, counts = [], []
    for counted in (counted_by_fio, counted_by_lunscope):
        data.write_bytes(bytes(FILE_BYTES))
        counts.append(counted(job, data))
        touched.append(places(data))
    assert touched[0]
    assert touched[1] == touched[0]
    assert counts[1] == counts[0]


@needs.fio
@needs.io_uring
def test_reads_and_writes_of_a_mix_end_together(data: Path) -> None:
    job = JOBS / "mixed-sequence.fio"
    for counted in (counted_by_fio, counted_by_lunscope):
        data.write_bytes(bytes(FILE_BYTES))
        counts = counted(job, data)
        assert sum(counts[direction][1] for direction in DIRECTIONS) == 2 << 20
        assert counts["read"][0] == pytest.approx(0.6 * 256, abs=40)
        # Writes have a position of their own: they leave nothing out.
        assert places(data) == list(range(0, counts["write"][1], BLOCK_BYTES))


@needs.fio
@needs.io_uring
def test_what_is_verified_is_written_as_often(data: Path) -> None:
    job = JOBS / "check-what-was-written.fio"
    (mine,) = by_lunscope(job, data)
    assert counted_by_fio(job, data)["write"] == (mine["write"]["ios"], mine["write"]["bytes"])
    assert (mine["verify"]["damaged_ranges"], mine["job"]["verify"]) == (0, True)


@needs.fio
@needs.io_uring
def test_the_ramp_is_in_neither_result(data: Path) -> None:
    job = JOBS / "warm-up.fio"
    (mine,) = by_lunscope(job, data)
    # 200 a second; with the ramp of a second it would be twice as many.
    for ios in (counted_by_fio(job, data)["read"][0], mine["read"]["ios"]):
        assert 20 < ios < 300
    assert mine["epochs"][0]["start_s"] >= 1
    assert mine["elapsed_s"] >= 2


@needs.fio
@needs.io_uring
def test_both_pause(data: Path) -> None:
    job = JOBS / "pauses.fio"
    theirs, mine = by_fio(job, data), by_lunscope(job, data)
    assert total(theirs, "total_ios", "io_bytes") == total(mine, "ios", "bytes")
    # 64 I/Os with a pause of 20 ms after every 10.
    assert theirs[0]["read"]["runtime"] >= 110
    assert mine[0]["duration_s"] >= 0.12


@needs.fio
def test_fio_reads_the_job_files_too(data: Path) -> None:
    """All at once, as fio measures its clock for a tenth of a second whenever it starts."""
    subprocess.run(
        ["fio", "--parse-only", *sorted(JOBS.glob("**/*.fio"))],
        cwd=data.parent,
        capture_output=True,
        check=True,
        timeout=60,
        env={**os.environ, "DATA": data.name},
    )


def test_the_others_are_refused(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATA", str(data))
    refused = sorted((JOBS / "refused").glob("*.fio"))
    assert len(refused) == 2
    for job in refused:
        with pytest.raises(Exception, match=job.name):
            read_fio(job)
