from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import LunscopeError, UsageError
from engine.job.file import dump_job, parse_job
from engine.job.fixed_settings import access_and_mix
from engine.job.formats.choose import read_job
from engine.job.io_priority import IoPriority, PriorityClass
from engine.job.rate_floor import RateFloor
from engine.job.spec import Access, Backend, BlockShare, JobSpec, Knobs, Mode, PathPolicy, PathSpec, TargetSpec
from tests.unit.test_distribution import DISTRIBUTIONS


def test_an_empty_file_is_the_default_job() -> None:
    assert parse_job("") == JobSpec()


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(LunscopeError, match=r"missing\.toml: cannot read the job file: No such file"):
        read_job(tmp_path / "missing.toml")
    with pytest.raises(LunscopeError, match="not a job file: not a regular file"):
        read_job(tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(UsageError, match="not text in UTF-8"):
        read_job(tmp_path / "binary")
    (tmp_path / "large").write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(UsageError, match="larger than 1 MiB"):
        read_job(tmp_path / "large")
    (tmp_path / "good.toml").write_text("qd = 5\n")
    assert read_job(tmp_path / "good.toml").scenarios[0].job.knobs.queue_depth == 5


_NAMES = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
_NODES = st.from_regex("/dev/[a-z0-9-]{1,9}", fullmatch=True)
_PATHS = st.lists(st.builds(PathSpec, _NODES, st.integers(0, 100), st.booleans()), min_size=1, max_size=4).map(tuple)
_TIMES = st.lists(st.floats(0, 1e6), max_size=3, unique=True).map(lambda times_s: tuple(sorted(times_s)))
_JOBS = st.builds(
    JobSpec,
    targets=st.lists(
        st.builds(TargetSpec, st.none() | _NAMES.filter(lambda name: name != "scratch"))
        | st.builds(TargetSpec.lun, _PATHS),
        min_size=1,
        max_size=4,
    ).map(tuple),
    copies=st.integers(1, 8),
    total_queue_depth=st.booleans(),
    knobs=st.builds(
        Knobs,
        queue_depth=st.integers(1, 4096),
        policy=st.sampled_from(PathPolicy),
        stripe_width=st.integers(1, 1024),
        blocks=st.sampled_from(
            [
                (BlockShare(4096),),
                (BlockShare(4096, 60.0), BlockShare(16384, 40.0)),
                (BlockShare(512, 33.4), BlockShare(1024, 66.6)),
            ]
        ),
        read_pct=st.floats(0, 100),
        rate_iops=st.none() | st.floats(1e-3, 1e9),
        write_blocks=st.none() | st.just((BlockShare(8192, 50.0), BlockShare(65536, 50.0))),
        distribution=DISTRIBUTIONS,
        write_distribution=st.none() | DISTRIBUTIONS,
        mode=st.sampled_from(Mode),
        threads=st.integers(1, 1000),
        fsync_every=st.none() | st.integers(1, 10_000),
    ),
    access=st.sampled_from(Access),
    backend=st.sampled_from(Backend),
    streams=st.integers(1, 1024),
    stripe_unit_bytes=st.integers(8, 1 << 20).map(lambda units: units * 512),
    stream_step_bytes=st.none() | st.integers(0, 1 << 50),
    separate=st.booleans(),
    jump_bytes=st.integers(-(1 << 50), 1 << 50),
    size_bytes=st.none() | st.integers(1, 1 << 50),
    offset_bytes=st.integers(0, 1 << 50),
    align_bytes=st.none() | st.integers(1, 1 << 50),
    io_bytes=st.none() | st.integers(1, 1 << 50),
    loops=st.none() | st.integers(1, 10**9),
    ramp_s=st.just(0.0) | st.floats(1e-6, 1e7),
    think_s=st.just(0.0) | st.floats(1e-6, 1e7),
    think_every=st.integers(1, 10**9),
    response_limits_s=_TIMES,
    response_edges_s=_TIMES,
    priorities=st.lists(
        st.builds(
            IoPriority,
            st.sampled_from(PriorityClass),
            st.integers(0, 7),
            st.integers(0, 9),
            st.none() | st.floats(0, 3),
            st.sampled_from(["", "read", "write"]),
            st.none() | st.integers(1, 1 << 20),
        ),
        max_size=3,
    ).map(tuple),
    cpus=st.frozensets(st.integers(0, 1000), max_size=5).map(lambda cpus: tuple(sorted(cpus))),
    rate_min=st.none()
    | st.builds(
        RateFloor,
        st.integers(1, 1 << 50).map(float),
        in_bytes=st.booleans(),
        cycle_s=st.floats(0.1, 1e7),
    ),
    runtime_s=st.none() | st.floats(1e-6, 1e7),
    seed=st.integers(0, 2**63 - 1),
    name=_NAMES,
)


@pytest.mark.slow
@given(_JOBS)
def test_jobs_round_trip(job: JobSpec) -> None:
    assert parse_job(dump_job(job)) == job


def test_a_file_called_scratch_stays_a_file() -> None:
    job = parse_job(dump_job(JobSpec((TargetSpec("scratch"),))))
    assert job.targets == (TargetSpec("./scratch"),)


def test_a_name_that_is_no_unicode_cannot_be_dumped() -> None:
    with pytest.raises(LunscopeError, match="not UTF-8"):
        dump_job(JobSpec((TargetSpec("/x/\udcff"),)))


def test_order_and_mix() -> None:
    assert access_and_mix(None, None) == (Access.RANDOM, 100.0)
    assert access_and_mix(None, 80) == (Access.RANDOM, 80)
    assert access_and_mix("rw", None) == (Access.SEQUENTIAL, 50.0)
    assert access_and_mix("randrw", 80) == (Access.RANDOM, 80)
    assert access_and_mix("write", None) == (Access.SEQUENTIAL, 0.0)
    assert access_and_mix("randread", 100) == (Access.RANDOM, 100.0)
    with pytest.raises(UsageError, match="use --rw rw with it"):
        access_and_mix("read", 50)
    with pytest.raises(UsageError, match="is none of read, write"):
        access_and_mix("trim", None)
