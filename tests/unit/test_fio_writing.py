from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import LunscopeError, UsageError
from engine.job.distribution import Normal, Pareto, Permutation, Uniform, Zipf, hot_and_cold, locality
from engine.job.formats import fio_writing
from engine.job.formats.choose import read_job, save_job
from engine.job.formats.fio_file import read_fio
from engine.job.formats.fio_writing import dump_fio
from engine.job.rate_floor import RateFloor
from engine.job.scenario import Scenario, Turn
from engine.job.spec import Access, Arrival, Backend, BlockShare, Flush, JobSpec, Knobs, Mode, PathSpec, TargetSpec
from engine.replacing import replace

MIX = (BlockShare(4096, 60), BlockShare(16384, 40))
BASE = JobSpec((TargetSpec("/dev/x"),), Knobs(queue_depth=8), backend=Backend.URING, runtime_s=30.0)


def again(folder: Path, job: JobSpec) -> Scenario:
    path = folder / "again.fio"
    path.write_text(dump_fio([Scenario(job)]))
    return read_fio(path).scenarios[0]


def comparable(job: JobSpec) -> JobSpec:
    """Leave out what is no part of the load (worker threads, the unit and policy of a single target), or in fio alone.

    There blocks of several sizes begin at multiples of the smallest, and what has no runtime ends with its size.
    """
    knobs = replace(job.knobs, threads=1, policy=Knobs().policy)
    align_bytes = job.align_bytes if len(knobs.block_sizes) == 1 else None
    if job.runtime_s is None and not job.ends_by_bytes:
        job = replace(job, loops=knobs.queue_depth if job.backend is Backend.THREADS else 1)
    return replace(job, knobs=knobs, align_bytes=align_bytes, stripe_unit_bytes=1 << 20, poll=False, name="job")


_SIZES = st.sampled_from([(BlockShare(4096),), (BlockShare(512),), MIX])
_JOBS = st.builds(
    JobSpec,
    targets=st.lists(
        st.sampled_from(["/dev/x", "a:b", "rel/file", "scratch.1"]), min_size=1, max_size=3, unique=True
    ).map(lambda names: tuple(map(TargetSpec, names))),
    knobs=st.builds(
        Knobs,
        queue_depth=st.integers(1, 500),
        blocks=_SIZES,
        write_blocks=st.none() | st.just((BlockShare(65536),)),
        read_pct=st.integers(0, 100).map(float),
        distribution=st.sampled_from(
            [Uniform(), Zipf(1.25), Pareto(0.2), hot_and_cold(90, 10), locality([50, 25, 20, 5])]
        ),
        mode=st.sampled_from([Mode.DIRECT, Mode.BUFFERED]),
    ),
    backend=st.sampled_from([Backend.URING, Backend.THREADS]),
    size_bytes=st.none() | st.just(3 << 20),
    runtime_s=st.none() | st.sampled_from([0.25, 30.0, 60.0]),
    seed=st.integers(1, 2**62),
)


@pytest.mark.slow
@given(_JOBS)
def test_what_is_written_reads_back_as_the_same_load(tmp_path_factory: pytest.TempPathFactory, job: JobSpec) -> None:
    job = replace(job, knobs=replace(job.knobs, stripe_width=len(job.targets)))
    if job.knobs.write_blocks == job.knobs.blocks:
        job = replace(job, knobs=replace(job.knobs, write_blocks=None))
    found = comparable(again(tmp_path_factory.getbasetemp(), job).job)
    assert found == comparable(job)


@pytest.mark.parametrize(
    "job",
    [
        replace(BASE, access=Access.SEQUENTIAL),
        replace(BASE, knobs=replace(BASE.knobs, distribution=Permutation())),
        replace(BASE, knobs=replace(BASE.knobs, rate_iops=5000.0), arrival=Arrival.POISSON),
        replace(BASE, knobs=replace(BASE.knobs, rate_iops=5000.0, read_pct=70.0)),
        replace(BASE, knobs=replace(BASE.knobs, read_pct=0.0, mode=Mode.DSYNC)),
        replace(BASE, knobs=replace(BASE.knobs, read_pct=30.0, fsync_every=16)),
        replace(BASE, knobs=replace(BASE.knobs, read_pct=30.0, fsync_every=16, flush=Flush.FDATASYNC)),
        replace(
            BASE,
            targets=(TargetSpec("/dev/x"), TargetSpec("/dev/y")),
            knobs=replace(BASE.knobs, stripe_width=2, queue_depth=5),
            total_queue_depth=True,
        ),
        replace(BASE, offset_bytes=1 << 20, size_bytes=1 << 20, align_bytes=512, ramp_s=5.0),
        replace(BASE, io_bytes=1 << 20, loops=3),
        replace(BASE, runtime_s=None, io_bytes=1 << 20, loops=1),
        replace(BASE, backend=Backend.THREADS, runtime_s=None, loops=16),
        replace(BASE, backend=Backend.THREADS, think_s=0.002, think_every=5),
        replace(BASE, rate_min=RateFloor(1048576.0, in_bytes=True, cycle_s=0.5)),
        replace(BASE, rate_min=RateFloor(500.0, in_bytes=False)),
        replace(BASE, access=Access.SEQUENTIAL, jump_bytes=-8192, runtime_s=None, loops=1),
        replace(BASE, access=Access.SEQUENTIAL, jump_bytes=4096),
        replace(BASE, access=Access.SEQUENTIAL, separate=True, knobs=replace(BASE.knobs, read_pct=40.0)),
    ],
)
def test_what_has_words_of_its_own(tmp_path: Path, job: JobSpec) -> None:
    assert comparable(again(tmp_path, job).job) == comparable(job)


JOB_FILES = Path(__file__).parents[1] / "fio_jobs"
NOT_WRITTEN = {"check-what-was-written", "clones-on-one-sequence", "clones-side-by-side", "small-share-of-a-file"}


@pytest.mark.parametrize("path", sorted(JOB_FILES.glob("*.fio")), ids=lambda path: path.stem)
def test_job_files_that_were_read_are_written_as_the_same_loads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: Path
) -> None:
    (tmp_path / "data").write_bytes(bytes(1 << 20))
    monkeypatch.setenv("DATA", str(tmp_path / "data"))
    whole = read_fio(path)
    if whole.has_groups:
        with pytest.raises(UsageError, match="run at the same time with unlike settings"):
            _ = whole.scenarios
        return
    read = whole.scenarios
    if path.stem in NOT_WRITTEN:
        with pytest.raises(UsageError, match="--save-job: fio has no"):
            dump_fio(read)
        return
    written = tmp_path / "again.fio"
    written.write_text(dump_fio(read))
    found = read_fio(written).scenarios
    engine = {Backend.AUTO: Backend.URING}
    expected = [replace(each.job, backend=engine.get(each.job.backend, each.job.backend)) for each in read]
    assert [comparable(each.job) for each in found] == [comparable(job) for job in expected]


def test_turns_are_jobs_behind_a_stonewall(tmp_path: Path) -> None:
    turns = Turn(10.0, (("queue_depth", 16),)), Turn(20.5, (("blocks", MIX), ("rate_iops", 1000.0)))
    path = tmp_path / "turns.fio"
    path.write_text(dump_fio([Scenario(BASE, turns)]))
    found = [each.job for each in read_fio(path).scenarios]
    assert [job.runtime_s for job in found] == [10.0, 10.5, 9.5]
    assert [comparable(job).knobs for job in found] == [
        comparable(replace(BASE, knobs=knobs)).knobs
        for knobs in (BASE.knobs, *(each for _, each in Scenario(BASE, turns).states()))
    ]


def test_jobs_that_follow_each_other(tmp_path: Path) -> None:
    other = replace(BASE, access=Access.SEQUENTIAL, name="then")
    save_job(tmp_path / "two.fio", [Scenario(BASE), Scenario(other)])
    first, second = read_job(tmp_path / "two.fio").scenarios
    assert (comparable(first.job), comparable(second.job)) == (comparable(BASE), comparable(other))
    with pytest.raises(UsageError, match="2 jobs, one after another: choose with --section: job, then"):
        save_job(tmp_path / "two.toml", [Scenario(BASE), Scenario(other)])


def test_what_is_reported_of_response_times_is_saved_or_said_to_be_left_out(tmp_path: Path) -> None:
    asked = replace(BASE, response_limits_s=(0.005, 0.01), response_edges_s=(0.002,))
    assert save_job(tmp_path / "one.toml", [Scenario(asked)]) == ()
    assert read_job(tmp_path / "one.toml").scenarios[0].job == asked
    turned = Scenario(replace(asked, runtime_s=2.0), (Turn(1.0, (("queue_depth", 2),)),))
    assert save_job(tmp_path / "steps.toml", [turned]) == ()
    assert read_job(tmp_path / "steps.toml").scenarios[0].job == turned.job
    (line,) = save_job(tmp_path / "one.fio", [Scenario(asked)])
    assert "response times are left out" in line
    assert save_job(tmp_path / "plain.fio", [Scenario(BASE)]) == ()


def test_scratch_files_lie_where_they_lay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUNSCOPE_SCRATCH_DIR", "/mnt/fast")
    path = tmp_path / "x.fio"
    path.write_text(
        dump_fio([Scenario(replace(BASE, targets=(TargetSpec(),) * 2, knobs=replace(BASE.knobs, stripe_width=2)))])
    )
    read = read_fio(path)
    assert read.scenarios[0].job.targets == (TargetSpec(), TargetSpec())
    assert (read.scenarios[0].job.size_bytes, read.scratch_folder) == (256 << 20, Path("/mnt/fast"))


LUN = TargetSpec.lun((PathSpec("/dev/sda"), PathSpec("/dev/sdb")))
TWO = (TargetSpec("/dev/x"), TargetSpec("/dev/y"))


@pytest.mark.parametrize(
    ("job", "words"),
    [
        (replace(BASE, targets=(LUN,)), "no --lun"),
        (replace(BASE, targets=TWO, copies=2), "no --mirror"),
        (replace(BASE, access=Access.SEQUENTIAL, streams=2), "no --streams"),
        (
            replace(BASE, access=Access.SEQUENTIAL, knobs=Knobs(read_pct=50.0)),
            "one sequence that reads and writes share",
        ),
        (replace(BASE, arrival=Arrival.CONSTANT), "no --arrival constant"),
        (
            replace(BASE, targets=TWO, knobs=Knobs(stripe_width=2, blocks=(BlockShare(1 << 20),))),
            "no --bs 1m cut over stripe units of 64k",
        ),
        (replace(BASE, access=Access.SEQUENTIAL, backend=Backend.THREADS), "threads with several I/Os in sequence"),
        (replace(BASE, knobs=Knobs(read_pct=33.3)), "whole numbers only: --read-pct: 33.3"),
        (replace(BASE, knobs=Knobs(blocks=(BlockShare(4096, 33.3), BlockShare(8192, 66.7)))), "--bs: 33.3"),
        (replace(BASE, knobs=Knobs(rate_iops=0.5)), "--rate (per target, thread and direction): 0.5"),
        (replace(BASE, knobs=Knobs(distribution=Normal(10))), "no such normal distribution"),
        (replace(BASE, knobs=Knobs(write_distribution=Zipf(1.1))), "--write-distribution for zones only"),
        (replace(BASE, rate_min=RateFloor(0.5, in_bytes=False)), "--rate-min: 0.5"),
        (
            replace(BASE, rate_min=RateFloor(9.0, in_bytes=False), knobs=Knobs(read_pct=50.0)),
            "judges --rate-min for each target",
        ),
        (replace(BASE, targets=(TargetSpec("/x/a#b"),)), "cannot hold the target /x/a#b"),
        (replace(BASE, targets=(TargetSpec("/x/a\nb"),)), "cannot hold the target /x/a\\x0ab"),
    ],
)
def test_what_fio_cannot_say_is_refused_by_name(job: JobSpec, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        dump_fio([Scenario(job)])
    assert words in str(caught.value)
    assert str(caught.value).isprintable()


def test_what_is_new_in_jobs_is_refused_until_it_is_written(monkeypatch: pytest.MonkeyPatch) -> None:
    dump_fio([Scenario(replace(BASE, seed=5))])
    monkeypatch.setattr(fio_writing, "_WRITTEN", fio_writing._WRITTEN - {"seed"})
    with pytest.raises(UsageError, match="fio has no --seed: save it as"):
        dump_fio([Scenario(replace(BASE, seed=5))])


def test_saving_never_writes_over_anything(tmp_path: Path) -> None:
    path = tmp_path / "job.toml"
    save_job(path, [Scenario(BASE)])
    assert read_job(path).scenarios[0].job == BASE
    link = tmp_path / "link.fio"
    link.symlink_to(tmp_path / "target.fio")
    for taken in (path, link):
        with pytest.raises(LunscopeError, match="exists already: give another name"):
            save_job(taken, [Scenario(BASE)])
    assert not (tmp_path / "target.fio").exists()
    with pytest.raises(UsageError, match="are read only"):
        save_job(tmp_path / "x.ndisk", [Scenario(BASE)])
    with pytest.raises(LunscopeError, match="cannot be written: No such file"):
        save_job(tmp_path / "no" / "x.toml", [Scenario(BASE)])
