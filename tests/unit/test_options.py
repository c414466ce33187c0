from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from engine.errors import UsageError
from engine.job.distribution import Zipf, locality
from engine.job.formats.choose import read_job
from engine.job.io_priority import IoPriority, PriorityClass
from engine.job.rate_floor import RateFloor
from engine.job.spec import Access, Backend, BlockShare, JobSpec, Knobs, Mode, PathPolicy, PathSpec, TargetSpec
from engine.job.validate import validate
from tui.options.job import (
    LoadOptions,
    job_with,
    load_options,
    make_permissions,
    permission_options,
    with_scratch_targets,
)


def parse(*arguments: str) -> LoadOptions:
    seen: list[LoadOptions] = []

    @click.command()
    @load_options
    def command(**options: Any) -> None:
        seen.append(LoadOptions(**options))

    done = CliRunner().invoke(command, arguments, standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return seen[0]


def test_without_options_the_job_is_the_default() -> None:
    assert job_with(JobSpec(), parse()) == JobSpec()


def test_paths_copies_and_policies_reach_their_fields() -> None:
    arguments = ("--lun", "sda,sdb=3", "--lun", "sdc,sdd", "--prefer", "sdd", "-t", "/dev/x", "-t", "/dev/y")
    job = job_with(JobSpec(), parse(*arguments, "--mirror", "2", "--policy", "queue-length", "--qd-total", "--qd", "9"))
    first = TargetSpec.lun((PathSpec("/dev/sda"), PathSpec("/dev/sdb", 3)))
    second = TargetSpec.lun((PathSpec("/dev/sdc"), PathSpec("/dev/sdd", preferred=True)))
    assert job.targets == (TargetSpec("/dev/x"), TargetSpec("/dev/y"), first, second)
    assert (job.copies, job.total_queue_depth, job.knobs.stripe_width) == (2, True, 4)
    assert job.knobs.policy is PathPolicy.LEAST_COMMAND_LOAD
    validate(job)
    with pytest.raises(UsageError, match="--prefer: /dev/sde is not a path"):
        job_with(JobSpec(), parse("--lun", "sda,sdb", "--prefer", "sde"))
    with pytest.raises(click.BadParameter, match="no path policy"):
        parse("--policy", "fastest")


def test_a_mirror_of_scratch_files_has_as_many_as_it_needs() -> None:
    job = with_scratch_targets(job_with(JobSpec(), parse("--mirror", "3")), 1)
    assert (len(job.targets), job.knobs.stripe_width) == (3, 3)
    validate(job)


@pytest.mark.parametrize(
    ("arguments", "depth"),
    [
        (("--qd-total", "3"), 3),
        (("--qd-total=3",), 3),
        (("--qd", "5", "--qd-total"), 5),
        (("--qd-total", "--qd", "5"), 5),
        (("--qd-total",), 1),
    ],
)
def test_one_depth_for_all_targets_is_a_number_or_that_of_qd(arguments: tuple[str, ...], depth: int) -> None:
    job = job_with(JobSpec(), parse(*arguments, *(word for name in "abcd" for word in ("-t", f"/dev/{name}"))))
    validate(job)
    assert (job.total_queue_depth, job.knobs.queue_depth, job.knobs.stripe_width) == (True, depth, 4)


def test_every_option_reaches_its_field() -> None:
    job = job_with(
        JobSpec(),
        parse(
            *("--target", "/dev/a", "-t", "/dev/b", "--bs", "4k:60,16k:40", "--rw", "rw", "--read-pct", "80"),
            *("--qd", "10", "--stripe-width", "1", "--stripe-unit", "128k", "--threads", "3", "--rate", "500"),
            *("--write-bs", "64k", "--streams", "3", "--fsync-every", "50"),
            *("--mode", "dsync", "--runtime", "2m", "--size", "1g", "--seed", "9", "--engine", "threads"),
            *("--stream-step", "768k", "--jump", "0", "--offset", "3m", "--io-size", "6m", "--loops", "4"),
            *("--ramp", "5s", "--think", "20ms", "--think-every", "8", "--rate-min", "10m:500ms"),
            *("--io-priority", "read:4k:20%:realtime/1,idle", "--cpus", "0-2,7"),
            *("--response-limits", "10ms,5ms", "--response-edges", "2ms"),
        ),
    )
    blocks = (BlockShare(4096, 60.0), BlockShare(16384, 40.0))
    knobs = Knobs(
        10, 1, blocks, 80.0, 500.0, write_blocks=(BlockShare(65536),), mode=Mode.DSYNC, threads=3, fsync_every=50
    )
    targets = (TargetSpec("/dev/a"), TargetSpec("/dev/b"))
    expected = JobSpec(
        *(targets, knobs, Access.SEQUENTIAL, Backend.THREADS),
        streams=3,
        stripe_unit_bytes=131072,
        size_bytes=1 << 30,
        runtime_s=120.0,
        seed=9,
        stream_step_bytes=768 << 10,
        offset_bytes=3 << 20,
        io_bytes=6 << 20,
        loops=4,
        ramp_s=5.0,
        think_s=0.02,
        think_every=8,
        response_limits_s=(0.005, 0.01),
        response_edges_s=(0.002,),
        priorities=(IoPriority(PriorityClass.REALTIME, 1, 0, 20.0, "read", 4096), IoPriority(PriorityClass.IDLE)),
        cpus=(0, 1, 2, 7),
        rate_min=RateFloor(10 << 20, in_bytes=True, cycle_s=0.5),
    )
    assert job == expected
    validate(job)


def test_offsets_of_their_own_reach_their_fields() -> None:
    assert job_with(JobSpec(), parse("--rw", "read", "--jump", "-8k")).jump_bytes == -8192
    assert job_with(JobSpec(), parse("--rw", "rw", "--separate")).separate
    assert job_with(JobSpec(), parse("--align", "512")).align_bytes == 512


def test_distributions_of_both_directions_reach_their_fields() -> None:
    job = job_with(JobSpec(), parse("--distribution", "zipf:1.2", "--write-distribution", "locality:50,30,20"))
    assert job.knobs.distribution == Zipf(1.2)
    assert job.knobs.write_distribution == locality([50, 30, 20])
    validate(job)


def test_named_targets_are_all_used_unless_the_width_says_otherwise() -> None:
    assert job_with(JobSpec(), parse("-t", "a", "-t", "b")).knobs.stripe_width == 2
    assert job_with(JobSpec(), parse("-t", "a", "-t", "b", "--stripe-width", "1")).knobs.stripe_width == 1


def test_a_width_of_zero_is_not_the_default() -> None:
    job = with_scratch_targets(job_with(JobSpec(), parse("--stripe-width", "0")), 1)
    with pytest.raises(UsageError, match="--stripe-width"):
        validate(job)


def test_an_option_wins_over_the_job_file_and_leaves_the_rest(tmp_path: Path) -> None:
    file = tmp_path / "job.toml"
    file.write_text('target = ["/dev/a"]\nrw = "randrw"\nread_pct = 30\nqd = 7\nseed = 3\nmode = "sync"\n')
    base = read_job(file).scenarios[0].job
    job = job_with(base, parse("--qd", "9"))
    assert (job.knobs.queue_depth, job.knobs.read_pct, job.seed, job.knobs.mode) == (9, 30.0, 3, Mode.SYNC)
    assert job_with(base, parse("--read-pct", "60")).knobs.read_pct == 60.0
    other = job_with(base, parse("--rw", "write"))
    assert (other.access, other.knobs.read_pct) == (Access.SEQUENTIAL, 0.0)
    assert job_with(base, parse("-t", "/dev/b")).targets == (TargetSpec("/dev/b"),)


def test_scratch_targets_are_as_many_as_the_stripe_is_wide() -> None:
    def count(width: int, at_least: int) -> int:
        job = job_with(JobSpec(), parse("--stripe-width", str(width)))
        return len(with_scratch_targets(job, at_least).targets)

    assert [count(1, 1), count(3, 1), count(1, 4), count(6, 4)] == [1, 3, 4, 6]
    named = job_with(JobSpec(), parse("-t", "/dev/a"))
    assert with_scratch_targets(named, 4) is named


def test_permissions_are_exactly_what_was_given() -> None:
    seen: dict[str, Any] = {}

    @click.command()
    @permission_options
    def command(**options: Any) -> None:
        seen.update(options)

    arguments = ["--allow-write", "/dev/a", "--allow-write", "./b"]
    assert CliRunner().invoke(command, arguments).exit_code == 0
    allowed = make_permissions(
        seen["allow_write"], destroy_data=seen["destroy_data"], typed=None, scratch_dir=Path("/scratch")
    )
    assert (allowed.typed, allowed.make_in) == (frozenset(), Path("/scratch"))
    assert (allowed.allow_write, allowed.destroy_data) == (frozenset({"/dev/a", "./b"}), False)
