"""The load that preconditions, and what is said of the time it takes."""

from __future__ import annotations

import pytest

from engine.errors import RefusedError, UsageError
from engine.job.file import parse_job
from engine.job.precondition import left_s, precondition_job, precondition_words, progress_words
from engine.job.spec import Access, BlockShare, JobSpec, Knobs, Mode, PathSpec, Permissions, TargetSpec
from engine.job.validate import validate

GIB = 1 << 30
DISKS = JobSpec(
    (TargetSpec("/dev/a"), TargetSpec("/dev/b")),
    Knobs(read_pct=100.0, mode=Mode.BUFFERED, rate_iops=10.0),
    offset_bytes=1 << 20,
    size_bytes=1 << 30,
    runtime_s=5.0,
    verify=True,
)


def allowed(*paths: str) -> Permissions:
    return Permissions(frozenset(paths))


def test_it_writes_what_the_load_uses_twice_and_nothing_else_of_the_load_stays() -> None:
    made = precondition_job(DISKS, allowed("/dev/a", "/dev/b"))
    validate(made)
    assert (made.targets, made.size_bytes, made.offset_bytes) == (DISKS.targets, 1 << 30, 1 << 20)
    assert (made.access, made.loops, made.io_bytes, made.runtime_s) == (Access.SEQUENTIAL, 2, None, None)
    assert (made.knobs.blocks, made.knobs.stripe_width) == ((BlockShare(128 << 10),), 2)
    assert (made.knobs.read_pct, made.knobs.mode, made.knobs.rate_iops) == (0.0, Mode.DIRECT, None)
    assert not made.verify


@pytest.mark.parametrize("permissions", [allowed(), allowed("/dev/a"), allowed("/dev/a", "/dev//b")])
def test_each_target_needs_its_permission(permissions: Permissions) -> None:
    with pytest.raises(RefusedError, match=r"--precondition overwrites it 2 times: allow it with --allow-write /dev/"):
        precondition_job(DISKS, permissions)


def test_each_path_of_a_lun_needs_its_permission() -> None:
    job = JobSpec((TargetSpec.lun((PathSpec("/dev/a"), PathSpec("/dev/b"))),))
    with pytest.raises(RefusedError, match=r"^/dev/b: "):
        precondition_job(job, allowed("/dev/a"))
    assert precondition_job(job, allowed("/dev/a", "/dev/b")).targets == job.targets


def test_a_scratch_file_is_none_and_a_job_file_cannot_ask_for_it() -> None:
    with pytest.raises(UsageError, match=r"name a --target"):
        precondition_job(JobSpec(), allowed())
    with pytest.raises(UsageError, match=r"give --precondition on the command line"):
        parse_job("precondition = true\n")


def test_amounts_and_times_are_those_of_the_largest_target() -> None:
    lines = list(precondition_words(JobSpec(), ("a", "b"), (100 * GIB, 1000 * GIB)))
    assert lines == [
        "preconditioning: writes 2 x 100 GiB = 200 GiB to a, 128k in sequence",
        "preconditioning: writes 2 x 1000 GiB = 2 TiB to b, 128k in sequence",
        "preconditioning: takes 72 min at 500 MB/s, 18 min at 2 GB/s each; a signal ends it, and nothing is measured "
        "then",
    ]
    (part, _) = precondition_words(DISKS, ("a",), (GIB,))
    assert part.endswith("to a (the part of it that --size and --offset choose), 128k in sequence")


def test_the_time_left_is_that_of_the_slowest_target() -> None:
    assert left_s((1000, 1000), (500, 250), 10.0) == pytest.approx(30)
    assert left_s((1000, 1000), (500, 0), 10.0) is None
    assert left_s((1000, 1000), (1000, 1001), 10.0) == 0
    assert progress_words((1 << 30, 1 << 30), (1 << 29, 1 << 28), 200.0) == (
        "preconditioning: 38 %, 3.8 MiB/s, 10 min left"
    )
    assert progress_words((1 << 30,), (0,), 1.0) == "preconditioning: 0 %"
