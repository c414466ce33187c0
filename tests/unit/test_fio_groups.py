"""fio job files whose sections run at the same time with unlike settings."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import UsageError
from engine.job.formats.fio_file import read_fio
from engine.job.formats.read_job import ReadJob
from engine.job.group import FlowPart, LoadGroup
from engine.job.scenario import Scenario
from engine.job.spec import TargetSpec

GLOBAL = "[global]\nioengine=io_uring\ndirect=1\nruntime=5\ntime_based\n"
VICTIM = "[victim]\nfilename=/dev/x\nrw=randread\nbs=4k\niodepth=2\n"
AGGRESSOR = "[aggressor]\nfilename=/dev/x\nrw=write\nbs=1m\niodepth=32\nruntime=3\n"


def read(folder: Path, text: str, *sections: str) -> ReadJob:
    path = folder / "x.fio"
    path.write_text(text)
    return read_fio(path, sections)


def group(folder: Path, text: str) -> LoadGroup:
    (phase,) = read(folder, text).phases
    assert isinstance(phase, LoadGroup)
    return phase


def test_unlike_sections_are_loads_of_their_own(tmp_path: Path) -> None:
    found = group(tmp_path, GLOBAL + VICTIM + AGGRESSOR)
    assert found.names == ("victim", "aggressor")
    victim, aggressor = found.jobs
    assert victim.targets == aggressor.targets == (TargetSpec("/dev/x"),)
    assert (victim.knobs.queue_depth, victim.knobs.read_pct, victim.runtime_s) == (2, 100.0, 5.0)
    assert (aggressor.knobs.queue_depth, aggressor.knobs.read_pct, aggressor.runtime_s) == (32, 0.0, 3.0)
    assert aggressor.knobs.block_sizes == (1 << 20,)


@pytest.mark.parametrize(
    "unlike",
    ["rw=read", "bs=8k", "iodepth=3", "rate_iops=100", "runtime=6", "verify=crc32c\nrw=randwrite", "ioengine=psync"],
)
def test_every_setting_may_differ(tmp_path: Path, unlike: str) -> None:
    text = GLOBAL + VICTIM + VICTIM.replace("victim", "other").replace("/dev/x", "/dev/y") + unlike
    assert len(group(tmp_path, text).loads) == 2


def test_equal_sections_on_one_target_are_loads_of_their_own(tmp_path: Path) -> None:
    found = group(tmp_path, GLOBAL + VICTIM + VICTIM.replace("victim", "other"))
    assert [(job.name, job.targets) for job in found.jobs] == [
        (name, (TargetSpec("/dev/x"),)) for name in ("victim", "other")
    ]


def test_sections_that_fio_judges_one_by_one_are_loads_of_their_own(tmp_path: Path) -> None:
    text = GLOBAL + "rate_min=1m\n" + VICTIM + VICTIM.replace("victim", "other").replace("/dev/x", "/dev/y")
    assert [job.rate_min is not None for job in group(tmp_path, text).jobs] == [True, True]


def test_groups_follow_each_other_and_single_jobs(tmp_path: Path) -> None:
    alone = "[alone]\nstonewall\nfilename=/dev/y\nrw=randread\n"
    next_pair = VICTIM.replace("victim", "c") + "stonewall\n" + AGGRESSOR.replace("aggressor", "d")
    phases = read(tmp_path, GLOBAL + VICTIM + AGGRESSOR + alone + next_pair).phases
    assert [type(phase) for phase in phases] == [LoadGroup, Scenario, LoadGroup]
    assert read(tmp_path, GLOBAL + VICTIM + AGGRESSOR + alone).is_timed


def test_a_group_is_chosen_by_its_sections(tmp_path: Path) -> None:
    (only,) = read(tmp_path, GLOBAL + VICTIM + AGGRESSOR, "victim").scenarios
    assert only.job.name == "victim"


def test_names_that_come_twice_are_numbered(tmp_path: Path) -> None:
    assert group(tmp_path, GLOBAL + VICTIM + VICTIM + "bs=8k\n").names == ("victim", "victim (2)")


def test_what_drives_one_load_only_names_the_loads_at_once(tmp_path: Path) -> None:
    found = read(tmp_path, GLOBAL + VICTIM + AGGRESSOR)
    with pytest.raises(UsageError, match=r"^\[victim\] and \[aggressor\] run at the same time with unlike settings"):
        _ = found.scenarios


def test_a_flow_is_shared_by_like_sections_too(tmp_path: Path) -> None:
    other = VICTIM.replace("victim", "other").replace("/dev/x", "/dev/y")
    found = group(tmp_path, GLOBAL + VICTIM + "flow=8\n" + other + "flow=2\nflow_id=3\nflow_sleep=2s\n")
    assert [load.flow for load in found.loads] == [FlowPart(8), FlowPart(2, 3, 2.0)]


def test_each_clone_has_the_weight(tmp_path: Path) -> None:
    other = VICTIM.replace("victim", "other").replace("/dev/x", "/dev/y")
    found = group(tmp_path, GLOBAL + VICTIM + "flow=8\nnumjobs=3\n" + other + "flow=0\n")
    assert [load.flow for load in found.loads] == [FlowPart(24), None]


def test_exitall_anywhere_ends_jobs_with_the_first_that_ends(tmp_path: Path) -> None:
    """As fio 3.33 does, also where the other job has the option."""
    found = group(tmp_path, GLOBAL + VICTIM + AGGRESSOR + "exitall\nexitall_on_error=1\n")
    assert [(load.ends_others, load.ends_others_on_error) for load in found.loads] == [(True, False), (True, True)]
    alone = group(tmp_path, GLOBAL + VICTIM + AGGRESSOR + "exitall_on_error=1\n")
    assert [(load.ends_others, load.ends_others_on_error) for load in alone.loads] == [(False, False), (False, True)]


def test_a_job_ends_those_of_its_reporting_group_or_all_beside_it(tmp_path: Path) -> None:
    third = VICTIM.replace("victim", "third")
    text = GLOBAL + "exitall\n" + VICTIM + "exit_what=stonewall\n" + AGGRESSOR + "new_group\n" + third
    found = group(tmp_path, text)
    assert [load.part for load in found.loads] == [0, 1, 1]
    assert [found.ended_by(index) for index in range(3)] == [(1, 2), (2,), (1,)]


def test_what_never_runs_is_left_out_and_said(tmp_path: Path) -> None:
    later = VICTIM.replace("victim", "later") + "stonewall\n"
    last = VICTIM.replace("victim", "last") + "stonewall\n"
    found = read(tmp_path, GLOBAL + "exitall\n" + VICTIM + AGGRESSOR + "exit_what=all\n" + later + last)
    assert len(found.phases) == 1
    assert found.warnings[-1].endswith("[aggressor] ends all jobs, so these never run: later, last")
    assert len(read(tmp_path, GLOBAL + VICTIM + "exit_what=all\n" + later).phases) == 2
    assert len(read(tmp_path, GLOBAL + "exitall\n" + VICTIM + "exit_what=stonewall\n" + later).phases) == 2


@pytest.mark.parametrize("lines", ["rw=read\n", "rw=randread\nsize=1m\n"])
def test_clones_that_are_no_streams_of_one_length_are_loads_of_their_own(tmp_path: Path, lines: str) -> None:
    text = GLOBAL + "[a]\nfilename=/dev/x\nnew_group\nstonewall\nnumjobs=3\niodepth=2\noffset=8k\noffset_increment=4m\n"
    found = group(tmp_path, text + lines + "rate_iops=100\n")
    assert found.names == ("a", "a (2)", "a (3)")
    assert [job.offset_bytes for job in found.jobs] == [8192 + number * (4 << 20) for number in range(3)]
    assert {(job.knobs.queue_depth, job.knobs.rate_iops, job.streams) for job in found.jobs} == {(2, 100.0, 1)}
    assert [job.seed for job in found.jobs] == [1, 2, 3]


def test_jobs_begin_later_than_others(tmp_path: Path) -> None:
    like = VICTIM.replace("victim", "like").replace("/dev/x", "/dev/y")
    found = group(tmp_path, GLOBAL + VICTIM + "startdelay=1\n" + like + "startdelay=1500ms\n")
    assert found.delays_s == (0.0, 0.5)
    assert read(tmp_path, GLOBAL + VICTIM + "startdelay=3\n").scenarios[0].job.name == "victim"


def test_files_of_ours_beside_devices_are_in_the_folder_of_their_section(tmp_path: Path) -> None:
    found = read(tmp_path, GLOBAL + VICTIM + "[b]\ndirectory=/mnt\nrw=randread\nsize=1m\n")
    assert found.scratch_folder == Path("/mnt")
