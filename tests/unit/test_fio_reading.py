from __future__ import annotations

import math
import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.errors import LunscopeError, UsageError
from engine.job.distribution import Normal, Pareto, Permutation, Uniform, Zipf, Zone, Zones
from engine.job.formats.fio_file import read_fio
from engine.job.formats.fio_ignored import WITHOUT_EFFECT
from engine.job.formats.fio_job import DRIVEN
from engine.job.formats.fio_sections import fio_lines, sections_of
from engine.job.formats.read_job import ReadJob
from engine.job.io_priority import format_priorities
from engine.job.rate_floor import RateFloor
from engine.job.scenario import validate_scenario
from engine.job.spec import Access, Arrival, Backend, BlockShare, Flush, JobSpec, Mode, TargetSpec
from engine.sweep.axes import parse_axis
from engine.sweep.limit import Limit
from tui.options.work import with_steady_search

HEAD = "[a]\nfilename=/dev/x\nruntime=5\ntime_based\nioengine=io_uring\ndirect=1\n"


def read(folder: Path, text: str, *sections: str) -> ReadJob:
    path = folder / "x.fio"
    path.write_text(text)
    found = read_fio(path, sections)
    for scenario in found.scenarios:
        validate_scenario(scenario)
    return found


def job(folder: Path, text: str) -> JobSpec:
    return read(folder, HEAD + text).scenarios[0].job


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(UsageError) as caught:
        read(folder, text)
    message = str(caught.value)
    assert message.startswith(str(folder / "x.fio"))
    assert message.isprintable()
    return message.removeprefix(str(folder / "x.fio"))


def refusal_anywhere(folder: Path, text: str) -> str:
    """Of a file, or of one it includes."""
    with pytest.raises(UsageError) as caught:
        read(folder, text)
    return str(caught.value)


# ------------------------------------------------------------------------------------------------------- what it means


def test_a_usual_job(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        """
        ; a mixed load
        [global]
        ioengine=io_uring   # the ring
        direct=1
        runtime=1m
        time_based
        filename=/dev/x
        [mix]
        rw=randrw
        rwmixread=70
        bssplit=4k/60:16k/40
        iodepth=8
        numjobs=2
        norandommap
        randseed=7
        size=1g
        """,
    )
    made = found.scenarios[0].job
    assert (made.targets, made.access, made.backend, made.name) == (
        (TargetSpec("/dev/x"),),
        Access.RANDOM,
        Backend.URING,
        "mix",
    )
    assert (made.runtime_s, made.seed, made.size_bytes, made.arrival) == (60.0, 7, 1 << 30, Arrival.CLOSED)
    knobs = made.knobs
    assert (knobs.queue_depth, knobs.threads, knobs.read_pct, knobs.mode) == (16, 2, 70.0, Mode.DIRECT)
    assert knobs.blocks == (BlockShare(4096, 60.0), BlockShare(16384, 40.0))
    assert knobs.distribution == Uniform()
    assert found.scenarios[0].turns == ()
    assert (made.align_bytes, made.loops, found.warnings) == (4096, None, ())


def test_without_options_it_is_what_fio_does(tmp_path: Path) -> None:
    found = read(tmp_path, "[a]\nfilename=/dev/x\n")
    made = found.scenarios[0].job
    assert (made.access, made.knobs.read_pct, made.knobs.blocks) == (Access.SEQUENTIAL, 100.0, (BlockShare(4096),))
    assert (made.backend, made.knobs.queue_depth, made.knobs.mode) == (Backend.THREADS, 1, Mode.BUFFERED)
    assert (made.runtime_s, made.loops) == (None, 1)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("rw=randread", Permutation()),
        ("rw=randread\nrandom_distribution=random", Permutation()),
        ("rw=randread\nnorandommap=0", Permutation()),
        ("rw=randread\nnorandommap", Uniform()),
        ("rw=randread\nnorandommap\nrandom_generator=tausworthe64", Uniform()),
        ("rw=randread\nnorandommap\nrandom_generator=lfsr", Permutation()),
        ("rw=read", Uniform()),
        ("rw=randread\nrandom_distribution=zipf:1.2", Zipf(1.2)),
        ("rw=randread\nrandom_distribution=pareto:0.2", Pareto(0.2)),
        ("rw=randread\nrandom_distribution=zipf", Zipf(1.1)),
        ("rw=randread\nrandom_distribution=pareto", Pareto(0.2)),
        ("rw=randread\nrandom_distribution=normal", Normal(100 * math.hypot(1 / 12))),
        ("rw=randread\nrandom_distribution=zoned:60/10:40/", Zones((Zone(60, 10), Zone(40, 90)))),
    ],
)
def test_where_random_ios_go(tmp_path: Path, line: str, expected: object) -> None:
    assert job(tmp_path, line).knobs.distribution == expected


def test_a_bell_is_as_wide_as_the_one_fio_draws(tmp_path: Path) -> None:
    bell = job(tmp_path, "rw=randread\nrandom_distribution=normal:10").knobs.distribution
    assert isinstance(bell, Normal)
    assert bell.deviation_pct == pytest.approx(100 * math.hypot(1 / 12, 0.1 / math.sqrt(12)))


def test_reads_and_writes_of_their_own(tmp_path: Path) -> None:
    knobs = job(
        tmp_path,
        "rw=randrw\nbssplit=2k/50:4k/50,4k/90:8k/10\nrandom_distribution=zoned:60/10:40/90,10/10:90/90",
    ).knobs
    assert knobs.blocks == (BlockShare(2048, 50), BlockShare(4096, 50))
    assert knobs.write_blocks == (BlockShare(4096, 90), BlockShare(8192, 10))
    assert knobs.write_distribution == Zones((Zone(10, 10), Zone(90, 90)))


@pytest.mark.parametrize(
    ("line", "reads", "writes"),
    [
        ("bs=8k", [(8192, 100)], None),
        ("bs=8k,32k", [(8192, 100)], [(32768, 100)]),
        ("bs=8k,32k,", [(8192, 100)], [(32768, 100)]),
        ("bs=,8k", [(4096, 100)], [(8192, 100)]),
        ("blocksize=0x2000", [(8192, 100)], None),
        ("bsrange=4k-16k", [(4096, 25), (8192, 25), (12288, 25), (16384, 25)], None),
        ("bsrange=4k-10k", [(4096, 40), (8192, 40), (10240, 20)], None),
        ("bsrange=8k-4k", [(4096, 50), (8192, 50)], None),
        ("bssplit=4k/50:1k/:32k/", [(4096, 50), (1024, 25), (32768, 25)], None),
        ("bssplit=4k:8k", [(4096, 50), (8192, 50)], None),
        ("bssplit=4k/30:8k/70:16k/0", [(4096, 30), (8192, 70)], None),
        ("bs=8k\nbssplit=4k/30:16k/70", [(4096, 30), (16384, 70)], None),
    ],
)
def test_block_sizes(
    tmp_path: Path, line: str, reads: list[tuple[int, float]], writes: list[tuple[int, float]] | None
) -> None:
    """The shares are those that fio 3.33 draws."""
    knobs = job(tmp_path, f"rw=randrw\n{line}").knobs
    assert [(share.block_bytes, round(share.percent, 9)) for share in knobs.blocks] == reads
    found = knobs.write_blocks
    assert (None if found is None else [(share.block_bytes, share.percent) for share in found]) == writes


@pytest.mark.parametrize(
    ("base", "text", "size"),
    [
        (1024, "1m", 1 << 20),
        (1024, "1mi", 1 << 20),
        (1024, "1mib", 10**6),
        (1024, "1MB", 1 << 20),
        (1000, "1m", 10**6),
        (1000, "1mi", 10**6),
        (1000, "1MiB", 1 << 20),
        (1000, "1048576b", 1 << 20),
    ],
)
def test_units_are_those_of_fio(tmp_path: Path, base: int, text: str, size: int) -> None:
    assert job(tmp_path, f"kb_base={base}\nbs=512\nsize={text}").size_bytes == size - size % 512


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90", 90), ("90s", 90), ("2m", 120), ("1h", 3600), ("1500ms", 1.5), ("2000000us", 2), ("1D", 86400)],
)
def test_times(tmp_path: Path, text: str, seconds: float) -> None:
    assert read(tmp_path, f"[a]\nfilename=x\ntimeout={text}").scenarios[0].job.runtime_s == seconds


@pytest.mark.parametrize(
    ("lines", "mode"),
    [
        ("direct=1", Mode.DIRECT),
        ("direct=0", Mode.BUFFERED),
        ("buffered=0", Mode.DIRECT),
        ("buffered=1", Mode.BUFFERED),
        ("direct=0\nsync=1\nrw=write", Mode.SYNC),
        ("direct=0\nsync=dsync\nrw=write", Mode.DSYNC),
        ("direct=1\nsync=1\nrw=read", Mode.DIRECT),
        ("direct=1\nsync=1\nrw=write", Mode.DIRECT_SYNC),
        ("direct=1\nsync=dsync\nrw=randrw", Mode.DIRECT_DSYNC),
        ("direct=0\nsync=none\nrw=write", Mode.BUFFERED),
    ],
)
def test_modes(tmp_path: Path, lines: str, mode: Mode) -> None:
    assert read(tmp_path, f"[a]\nfilename=x\n{lines}").scenarios[0].job.knobs.mode is mode


@pytest.mark.parametrize(
    ("lines", "rate", "arrival"),
    [
        ("rw=randread\nrate_iops=500", 500, Arrival.CLOSED),
        ("rw=randread\nrate_iops=500\nnumjobs=4", 2000, Arrival.CLOSED),
        ("rw=randread\nrate=4m\nbs=8k", 512, Arrival.CLOSED),
        ("rw=randrw\nrate_iops=500", 1000, Arrival.CLOSED),
        ("rw=randrw\nrwmixread=70\nrate_iops=700,300\nrate_process=poisson", 1000, Arrival.POISSON),
        ("rw=randwrite\nrate_iops=,300\nrate_process=linear", 300, Arrival.CLOSED),
        ("rw=randread\nrate_iops=0", None, Arrival.CLOSED),
    ],
)
def test_rates(tmp_path: Path, lines: str, rate: float | None, arrival: Arrival) -> None:
    made = job(tmp_path, lines)
    assert (made.knobs.rate_iops, made.arrival) == (rate, arrival)


@pytest.mark.parametrize(
    ("lines", "rate", "read_pct"),
    [
        ("rate=2m,1m", 768.0, 200 / 3),
        ("rwmixread=70\nrate_iops=500", 1000.0, 50.0),
        ("rwmixread=67\nrate_iops=512,256", 768.0, 67.0),
        ("rwmixread=10\nrate_iops=70,30\nrate_process=poisson", 100.0, 70.0),
    ],
)
def test_rates_of_both_directions_are_the_mix(tmp_path: Path, lines: str, rate: float, read_pct: float) -> None:
    """As counted with fio 3.33: 1024 reads and 512 writes of the first, 1000 and 1000 of the second."""
    found = read(tmp_path, HEAD + f"rw=randrw\n{lines}\n")
    knobs = found.scenarios[0].job.knobs
    assert knobs.rate_iops == rate
    assert knobs.read_pct == pytest.approx(read_pct)
    said = [warning for warning in found.warnings if "as the rates make it" in warning]
    assert len(said) == (knobs.read_pct != 67)


def test_fewer_ios_than_files_go_over_them_in_turn(tmp_path: Path) -> None:
    made = read(tmp_path, HEAD.replace("/dev/x", "a:b:c") + "rw=randread\niodepth=2\n").scenarios[0].job
    assert (made.knobs.queue_depth, made.knobs.stripe_width, made.total_queue_depth) == (2, 3, True)


@pytest.mark.parametrize(
    ("lines", "priorities"),
    [
        ("", ""),
        ("prioclass=0", ""),
        ("prioclass=3", "idle"),
        ("prio=6", "best-effort/6"),
        ("prioclass=3\ncmdprio_percentage=20", "read:20%:realtime,write:20%:realtime,idle"),
        ("cmdprio_percentage=20,0\ncmdprio_class=2\ncmdprio=3", "read:20%:best-effort/3"),
        ("bs=64k\ncmdprio_bssplit=64k/25/1/1:64k/75/3:1m/9,1m/9", None),
        ("bs=64k\ncmdprio_bssplit=64k/25/1/1:64k/75/3/2/5:1m/9,64k/0", "read:64k:25%:realtime/1,read:64k:75%:idle/2/5"),
    ],
)
def test_priorities_of_ios(tmp_path: Path, lines: str, priorities: str | None) -> None:
    text = HEAD + f"rw=randrw\n{lines}\n"
    if priorities is None:
        assert "write it like 64k/25" in refusal(tmp_path, text)
    else:
        assert format_priorities(read(tmp_path, text).scenarios[0].job.priorities) == priorities


def test_waiting_engines_have_one_io_for_each_job(tmp_path: Path) -> None:
    found = read(tmp_path, "[a]\nfilename=x\nrw=randread\nioengine=psync\nnumjobs=6\niodepth=32\nruntime=1\ntime_based")
    made = found.scenarios[0].job
    assert (made.backend, made.knobs.queue_depth, made.knobs.threads) == (Backend.THREADS, 6, 1)
    assert any("iodepth=32 is without effect" in warning for warning in found.warnings)


def test_several_files_share_the_depth(tmp_path: Path) -> None:
    made = (
        read(tmp_path, HEAD.replace("/dev/x", "/dev/x:/dev/a\\:b") + "rw=randread\niodepth=16\nbs=16k").scenarios[0].job
    )
    assert made.targets == (TargetSpec("/dev/x"), TargetSpec("/dev/a:b"))
    assert (made.knobs.queue_depth, made.knobs.stripe_width, made.total_queue_depth) == (8, 2, False)
    assert made.stripe_unit_bytes == 16384
    odd = read(tmp_path, HEAD.replace("/dev/x", "/dev/x:/dev/y") + "rw=randread\niodepth=5").scenarios[0].job
    assert (odd.knobs.queue_depth, odd.total_queue_depth) == (5, True)


def test_without_filename_every_clone_has_a_file_of_its_own(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        "[a]\ndirectory=/mnt/x\nsize=64m\nnumjobs=3\nrw=read\nioengine=libaio\niodepth=4\nruntime=1\ntime_based",
    )
    made = found.scenarios[0].job
    assert made.targets == (TargetSpec(),) * 3
    assert (made.knobs.queue_depth, made.size_bytes, made.backend) == (4, 64 << 20, Backend.AUTO)
    assert found.scratch_folder == Path("/mnt/x")


def targets(folder: Path, text: str) -> list[str | None]:
    return [target.path for target in read(folder, text).scenarios[0].job.targets]


def test_a_section_named_as_a_device_works_on_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to("elsewhere")
    (tmp_path / "plain").write_text("")
    assert targets(tmp_path, "[/dev/zero]\nrw=randread\nnumjobs=3\nsize=1m\n") == ["/dev/zero"]
    assert targets(tmp_path, "[/dev/zero]\nfilename_format=$jobnum\nsize=1m\n") == ["/dev/zero"]
    assert targets(tmp_path, "[link]\nsize=1m\n") == ["link"]
    for scratch in ("[plain]\n", "[nothing]\n", "[/dev/zero]\nnrfiles=2\n"):
        assert set(targets(tmp_path, scratch + "size=1m\nioengine=libaio\niodepth=2\n")) == {None}
    assert "directory: does not go with" in refusal(tmp_path, "[/dev/zero]\ndirectory=/mnt\nsize=1m\n")


@pytest.mark.parametrize(
    ("lines", "names"),
    [
        ("filename_format=/dev/$jobname", ["/dev/loop6"]),
        ("filename_format=/dev/$JobName.$clientuid", ["/dev/loop6."]),
        ("filename_format=f.$filenum\nnrfiles=2\nnumjobs=2", ["f.0", "f.1"]),
        ("filename_format=$jobname-$jobnum.$filenum\nnumjobs=2", ["loop6-0.0", "loop6-1.0"]),
        ("filename_format=$filenum\ndirectory=/mnt", ["/mnt/0"]),
        ("filename_format=scratch", ["./scratch"]),
        ("filename_format=$jobname\nfilename=/dev/x", ["/dev/x"]),
        ("filename_format=", [None]),
    ],
)
def test_names_that_fio_makes_are_made(tmp_path: Path, lines: str, names: list[str | None]) -> None:
    body = "rw=randread\nsize=1m\nioengine=libaio\niodepth=2\n"
    assert targets(tmp_path, f"[loop6]\n{body}{lines}\n") == names


def test_one_name_for_several_files_is_refused(tmp_path: Path) -> None:
    text = "[a]\nsize=1m\nnrfiles=2\niodepth=2\nioengine=libaio\nfilename_format=x\n"
    assert "filename_format: makes one name for several files" in refusal(tmp_path, text)


def test_a_file_that_fio_would_find_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.0.0").write_text("left by fio")
    (warning,) = read(tmp_path, f"[a]\ndirectory={tmp_path}\nsize=1m\nfadvise_hint=0\ninvalidate=0\n").warnings
    assert f"fio would use {tmp_path}/a.0.0, which exists" in warning


def test_the_size_is_that_of_all_files_together(tmp_path: Path) -> None:
    made = read(tmp_path, HEAD.replace("/dev/x", "a:b:c") + "rw=randread\niodepth=3\nsize=10m\nbs=8k").scenarios[0].job
    assert made.size_bytes == 10 * (1 << 20) // 3 // 8192 * 8192


# ------------------------------------------------------------------------------------------------------- several jobs


def test_sections_that_differ_in_their_disks_are_one_load(tmp_path: Path) -> None:
    body = "rw=randread\niodepth=8\nrate_iops=100\nioengine=io_uring\nruntime=9\n"
    made = read(tmp_path, f"[global]\n{body}[d1]\nfilename=/dev/x\n[d2]\nfilename=/dev/y\n").scenarios[0].job
    assert made.targets == (TargetSpec("/dev/x"), TargetSpec("/dev/y"))
    assert (made.knobs.queue_depth, made.knobs.stripe_width, made.knobs.rate_iops) == (8, 2, 200)
    assert made.name == "d1, d2"
    many = "".join(f"[d{number}]\nfilename=/dev/x{number}\n" for number in range(9))
    assert read(tmp_path, f"[global]\n{body}{many}").scenarios[0].job.name == "d0, d1, d2, 6 more"


NEXT = "[b]\nstonewall\nfilename=/dev/x\nioengine=io_uring\ndirect=1\n"


@pytest.mark.parametrize(
    "lines",
    ["rw=randrw\nruntime=7\ntime_based\nbs=8k", "rw=read\nruntime=7", "rw=randread", "rw=randread\nruntime=7\nsize=1m"],
)
def test_sections_behind_a_stonewall_are_runs_of_their_own(tmp_path: Path, lines: str) -> None:
    first, second = read(tmp_path, HEAD + "rw=randread\n" + NEXT + lines).scenarios
    assert (first.job.name, first.job.runtime_s, first.turns) == ("a", 5.0, ())
    assert (second.job.name, second.job.runtime_s, second.turns) == ("b", 7.0 if "7" in lines else None, ())


def test_one_section_can_be_chosen(tmp_path: Path) -> None:
    text = HEAD + "rw=read\n[b]\nfilename=/dev/y\nrw=randread\nstonewall\n"
    assert read(tmp_path, text, "b").scenarios[0].job.targets == (TargetSpec("/dev/y"),)
    with pytest.raises(UsageError, match="no section c: it has a, b"):
        read(tmp_path, text, "c")


def test_globals_reach_down_only(tmp_path: Path) -> None:
    text = "[global]\nbs=8k\nfilename=x\nruntime=1\n[a]\n[global]\nbs=16k\n[b]\n"
    assert read(tmp_path, text, "a").scenarios[0].job.knobs.blocks == (BlockShare(8192),)
    assert read(tmp_path, text, "b").scenarios[0].job.knobs.blocks == (BlockShare(16384),)


def test_includes_and_variables(tmp_path: Path) -> None:
    (tmp_path / "part.inc").write_text("bs=8k\n")
    path = tmp_path / "x.fio"
    path.write_text("[a]\ninclude part.inc\nfilename=${DISK}\n")
    sections = sections_of(fio_lines(path, {"DISK": "/dev/q"}), str(path))
    assert [(option.name, option.value) for option in sections[0].options] == [("bs", "8k"), ("filename", "/dev/q")]
    with pytest.raises(UsageError, match=r"line 3: \$\{DISK\}: no such environment variable"):
        list(fio_lines(path, {}))


# ------------------------------------------------------------------------------------------------ where, and how much

ENDS = "[a]\nfilename={path}\nioengine=io_uring\ndirect=1\nbs=4k\n"


@pytest.fixture
def megabyte(tmp_path: Path) -> Path:
    path = tmp_path / "megabyte"
    path.write_bytes(bytes(1 << 20))
    return path


@pytest.mark.parametrize(
    ("lines", "wanted"),
    [
        ("rw=read\nsize=64k", {"size_bytes": 64 << 10, "loops": 1}),
        ("rw=read\nsize=64k\nruntime=5", {"size_bytes": 64 << 10, "loops": 1, "runtime_s": 5.0}),
        ("rw=read\nsize=64k\ntime_based\nruntime=5", {"size_bytes": 64 << 10, "loops": None}),
        ("rw=read\nsize=64k\ntime_based", {"size_bytes": 64 << 10, "loops": 1, "runtime_s": None}),
        ("rw=read\nsize=25%\noffset=10%", {"size_bytes": 256 << 10, "offset_bytes": 106496}),
        ("rw=read\nio_size=100k\nloops=3", {"size_bytes": None, "io_bytes": 100 << 10, "loops": 3}),
        ("rw=read\nnumber_ios=7", {"io_bytes": 7 * 4096, "loops": 1}),
        ("rw=read\nnumber_ios=7\nsize=8k", {"size_bytes": 8192, "io_bytes": 8192}),
        ("rw=randread\nfilesize=512k\nsize=64k", {"size_bytes": 512 << 10, "io_bytes": 64 << 10}),
        ("rw=randread\nfilesize=64k\nsize=512k", {"size_bytes": 64 << 10, "io_bytes": None, "loops": 1}),
        ("rw=randread\nnumjobs=4\nsize=64k\nloops=2", {"streams": 1, "loops": 8}),
        (
            "rw=read\nnumjobs=4\nsize=64k",
            {"streams": 4, "stream_step_bytes": 0, "size_bytes": 64 << 10, "loops": 4},
        ),
        (
            "rw=read\nnumjobs=3\nsize=64k\noffset_increment=128k\nloops=2",
            {"streams": 3, "stream_step_bytes": 128 << 10, "size_bytes": 320 << 10, "io_bytes": 192 << 10, "loops": 2},
        ),
        ("rw=read\nsize=64k\noffset_increment=1m", {"streams": 1, "size_bytes": 64 << 10}),
        ("rw=read\nramp_time=3\nruntime=5\ntime_based", {"ramp_s": 3.0, "runtime_s": 8.0}),
        ("rw=read:-8k\nsize=64k", {"jump_bytes": -8192}),
        ("rw=randread:1\nsize=64k", {"jump_bytes": 0}),
        ("rw=rw\nsize=64k", {"separate": True}),
        ("rw=randread\nblockalign=512\nnorandommap", {"align_bytes": 512}),
        ("rw=randread\nblockalign=4k", {"align_bytes": None}),
        ("rw=randread\nnorandommap\nbs=4k,8k", {"align_bytes": None}),
        ("rw=randrw\nnorandommap\nbssplit=4k/50:8k/50", {"align_bytes": 4096}),
        ("rw=randread\nthinktime=500\nthinktime_blocks=4", {"think_s": 0.0005, "think_every": 4}),
        ("rw=randread\nrate_min=1m", {"rate_min": RateFloor(1048576.0, in_bytes=True)}),
        ("rw=write\nrate_iops_min=9,500\nratecycle=250", {"rate_min": RateFloor(500.0, in_bytes=False, cycle_s=0.25)}),
        ("rw=read\nrate_min=,1m", {"rate_min": None}),
        ("rw=read\nratemin=1m\nrate_cycle=250", {"rate_min": RateFloor(1048576.0, in_bytes=True, cycle_s=0.25)}),
        ("rw=read\nfileoffset=8k\nthreads=1\nio_submit_mode=offload", {"offset_bytes": 8192}),
        ("rw=randwrite\nverify=md5", {"verify": True}),
        ("rw=randwrite\nverify=md5\ndo_verify=0", {"verify": False}),
        ("rw=randwrite\nbssplit=4k/50:8k/50\nverify=md5", {"verify": True, "align_bytes": None}),
    ],
)
def test_where_it_goes_and_when_it_ends(tmp_path: Path, megabyte: Path, lines: str, wanted: dict[str, object]) -> None:
    made = read(tmp_path, ENDS.format(path=megabyte) + lines).scenarios[0].job
    assert {name: getattr(made, name) for name in wanted} == wanted


@pytest.mark.parametrize(
    ("lines", "vary", "slo"),
    [
        ("iodepth=128\nlatency_target=5ms\nlatency_percentile=99\nlatency_window=1s", "qd=1..128", "p99<=5ms"),
        ("latency_target=250\nlatency_percentile=99.9", "qd=1", "p99.9<=250us"),
        ("iodepth=4\nlatency_target=1s", "qd=1..4", "max<=1s"),
        ("iodepth=4\nsteadystate=iops:2%\nss_dur=30", "qd=4", None),
    ],
)
def test_what_looks_for_a_load_is_a_sweep(tmp_path: Path, lines: str, vary: str, slo: str | None) -> None:
    search = read(tmp_path, HEAD + "rw=randread\n" + lines).search
    assert search is not None
    assert (search.vary, search.slo) == (vary, slo)
    parse_axis(search.vary)
    assert slo is None or Limit.parse(slo).limit_ns > 0
    assert f"is the work of a sweep: lunscope sweep {tmp_path}/x.fio, " in search.refusal
    other = read(tmp_path, HEAD + "rw=randread\n" + lines + "\n[my b]\nstonewall\nrw=read\n").search
    assert other is not None
    assert f"lunscope sweep {tmp_path}/x.fio --section a, " in other.refusal


@pytest.mark.parametrize(
    ("lines", "round_s"), [("ss_dur=300", 60.0), ("ss_dur=2m", 24.0), ("ss_dur=2", 1.0), ("", 60.0)]
)
def test_one_section_until_steady_ends_by_the_rule_of_snia(tmp_path: Path, lines: str, round_s: float) -> None:
    found = with_steady_search(read(tmp_path, HEAD + f"rw=randread\nsteadystate=lat:5%\n{lines}"))
    job = found.scenarios[0].job
    assert (job.until_steady, job.steady_round_s) == (True, round_s)
    assert found.warnings[-1].startswith("steadystate=lat:5%: it ends by the SNIA rule over 5 rounds of ")


def test_several_sections_until_steady_and_looking_for_a_depth_are_refused_with_the_command(tmp_path: Path) -> None:
    two = "rw=randread\nss=iops:5%\n[two]\nstonewall\nfilename=/dev/y\nrw=randread\n"
    for lines, named in ((two, "lunscope run "), ("rw=randread\nlatency_target=5ms", "lunscope sweep ")):
        with pytest.raises(UsageError, match="is the work of a sweep: lunscope sweep ") as refused:
            with_steady_search(read(tmp_path, HEAD + lines))
        assert named in str(refused.value)


def test_sums_and_keywords(tmp_path: Path) -> None:
    page = os.sysconf("SC_PAGE_SIZE")
    assert job(tmp_path, "bs=(2*(1k+1k)),(16k/2)\nrw=randrw").knobs.block_sizes == (4096, 8192)
    made = job(tmp_path, "bs=$pagesize\nsize=$ncpus*64*$pagesize")
    assert made.knobs.blocks == (BlockShare(page),)
    assert made.size_bytes == os.sysconf("SC_NPROCESSORS_ONLN") * 64 * page


def test_who_waits_for_whom(tmp_path: Path) -> None:
    def names(text: str) -> list[list[str | None]]:
        body = "[global]\nsize=1m\n" + text.replace("@", "filename=/dev/")
        return [[target.path for target in each.job.targets] for each in read(tmp_path, body).scenarios]

    assert names("[a]\n@a\n[b]\n@b\nwait_for=a\n") == [["/dev/a"], ["/dev/b"]]
    after_both = "[a]\n@a\n[b]\n@b\nwait_for=a\n[c]\n@c\nwait_for=a\n"
    assert names(after_both) == [["/dev/a"], ["/dev/b", "/dev/c"]]
    with pytest.raises(UsageError, match="wait_for: waiting for one of several jobs that run together"):
        names("[a]\n@a\n[b]\n@b\n[c]\n@c\nwait_for=a\n")


# ------------------------------------------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("bs=4q", ", line 7: bs: '4q' is not a whole number"),
        ("bs=(4*1024", "bs: '(4*1024' is not a whole number: write it like 64k"),
        ("bs=(4k/3)", "bs: '(4k/3)' is not a whole number from 0"),
        ("bs=(4k/0)", "bs: '(4k/0)' is not a whole number from 0"),
        ("bs=(1k-4k)", "bs: '(1k-4k)' is not a whole number from 0"),
        ("bs=(2*(4k)", "bs: '(2*(4k)' is not a whole number from 0"),
        ("bs=" + "(" * 999 + "1" + ")" * 999, "is not a whole number from 0"),
        ("bs=0", "bs: '0' is out of range"),
        ("bs= 8k", "line 7: bs: a blank after the = is a part of the value for fio"),
        ("bs=1000", ", line 1: a: bs: 1000 is not a multiple of 512"),
        ("bs=" + "9" * 400, "is not a whole number"),
        ("bs=99999p", "is out of range: at most"),
        ("bssplit=4k/60:8k/60", "add up to 120 %, not 100"),
        ("bssplit=4k/50:8k/20", "add up to 70 %, not 100"),
        ("bssplit=4k/nan:8k/", "'nan' is not a number from 0 up"),
        ("bssplit=4k/-10:8k/110", "'-10' is not a number"),
        ("bssplit=4k/1e999:8k/", "is not a number from 0 up"),
        ("bssplit=" + ":".join(["4k/0.1"] * 1000), "1000 shares: at most 256"),
        ("bsrange=4k", "'4k' is not a range"),
        ("bsrange=512-64m", "has 131072 sizes: at most 256"),
        ("rw=trim", "rw: 'trim' is not driven"),
        ("rw=randread:8", "rw: several I/Os in sequence from each random offset are not driven"),
        ("rw=read:1k", "rw: after the colon only multiples of the block (4k) are driven"),
        ("rw=read:4q", "rw: '4q' is not a whole number"),
        ("rw=rw:4k", "rw: with an offset, or with reads and writes together"),
        ("rw=read:4k\nsize=1m\ntime_based=0", "rw: when it ends depends on whether the file is larger than size"),
        ("rw", "rw: needs a value"),
        ("rwmixread=101", "rwmixread: '101' is out of range"),
        ("iodepth=0", "iodepth: 0 is out of range: 1 to 4096"),
        ("iodepth=99999999999999999999", "iodepth:"),
        ("rw=randread\niodepth=4096\nnumjobs=1000", ", line 1: a: qd: 4096000 is out of range"),
        ("numjobs=65\noffset_increment=1m", "numjobs: 65 clones that begin apart, which are a load each: at most 64"),
        ("numjobs=4\noffset_increment=1%", "offset_increment: the size of /dev/x cannot be read now"),
        ("ioengine=mmap", "ioengine: 'mmap' is not driven"),
        ("direct=maybe", "direct: 'maybe' is not 0 or 1"),
        ("sync=2", "sync: '2' is none of"),
        ("rw=write\nfsync=1\nfdatasync=2", "fdatasync: fsync and fdatasync at once"),
        ("rw=randrw\nrate_iops=,500", "rate_iops: a limit for one direction of a mix alone is not driven"),
        ("rate_process=normal", "rate_process: 'normal' is neither"),
        ("rw=randread\nrate=1m\nbsrange=4k-8k", "rate: bytes per second with several block sizes"),
        ("rw=randread\nrandom_distribution=zipf:nan", "random_distribution: 'nan'"),
        ("rw=randread\nrandom_distribution=zipf:0", "the exponent 0 is out of range"),
        ("rw=randread\nrandom_distribution=zipf:1.2:0.3", "a centre, as in"),
        ("rw=randread\nrandom_distribution=zoned_abs:60/1g:40/2g", "is not driven"),
        ("rw=randread\nrandom_distribution=zoned:60/10:50/90", "add up to 110 %"),
        ("rw=randread\nrandom_distribution=zoned:60", "write zones as"),
        ("size=20%", "size: the size of /dev/x cannot be read now: give it in bytes"),
        ("size=200%", "size: 200 % is out of range: up to 100%"),
        ("size=20z", "size: a part of a device is not driven by zones"),
        ("offset=20%", "offset: the size of /dev/x cannot be read now"),
        ("filesize=4k-8k", "filesize: '4k-8k': files of drawn sizes are not driven"),
        ("filename=/dev/x:/dev/y\nfilesize=1m\nsize=1m", "filesize: with a smaller size and several files"),
        ("filename=/dev/x:/dev/y\nio_size=12k\niodepth=2", "io_size: does not leave whole blocks for each of 2 files"),
        ("io_size=10%", "io_size: a share is not driven here"),
        ("bs=4k,8k\nrw=randrw\nnumber_ios=5", "number_ios: with several block sizes"),
        ("loops=0", "loops: 0 is out of range"),
        ("size=100", "size: leaves 100 bytes for each file: at least 4k"),
        ("runtime=soon", "runtime: 'soon' is not a time"),
        ("kb_base=1023", "kb_base: '1023' is not 1000 or 1024"),
        ("randseed=18446744073709551615", "randseed:"),
        ("directory=/mnt/a", "directory: does not go with a filename that begins with a slash"),
        ("rw=randread\nblockalign=512", "blockalign: without norandommap fio shortens blocks that overlap"),
        ("rw=randrw\nblockalign=512,4k\nnorandommap", "blockalign: another alignment of reads than of writes"),
        ("verify=crc32c", "verify: reading what another job wrote is not driven"),
        ("thinktime=10\niodepth=4", "thinktime: with iodepth above 1 it is not driven"),
        ("thinktime=10\nthinktime_blocks_type=x", "thinktime_blocks_type: 'x' is neither complete nor issue"),
        ("rate_min=1m\nnumjobs=2", "rate_min: fio judges each of numjobs by itself"),
        ("rw=randrw\nrate_iops_min=10", "rate_iops_min: fio judges reads and writes each by themselves"),
        ("rate_min=1m\nrate_iops_min=10", "rate_min: with rate_iops_min as well it is not driven"),
        ("latency_target=5ms\nlatency_percentile=75", "latency_percentile: a sweep judges no 75 %"),
        ("latency_target=soon", "latency_target: 'soon' is not a time"),
        ("flow=-8", "flow: a weight below 0 is of an older fio: give each job its share"),
        ("flow=1001", "flow: '1001' is out of range: at most 1000"),
        ("flow=8\nrate_iops=9\nrate_process=poisson", "flow: with rate_process=poisson it is not driven"),
        ("exit_what=most", "exit_what: 'most' is none of group, stonewall, all"),
        ("exitall_on_error\nexit_what=all", "exit_what: 'all' with exitall_on_error is not driven"),
        ("startdelay=1-3", "startdelay: a delay drawn from a range is not driven"),
        ("wait_for=b", "wait_for: no section of that name is above it"),
        ("filename=a:b\niodepth=2\nfile_service_type=zipf:1.2", "file_service_type: only all files in turn"),
        ("filename=a:b\niodepth=2\nopenfiles=1", "openfiles: all files are used at once"),
        ("rw=write\nloops=2\nsize=1m\ntime_based=0\nunlink_each_loop", "unlink_each_loop: each loop would write a new"),
        ("filename=/nowhere/x\nallow_file_create=0", "allow_file_create: /nowhere/x does not exist"),
        ("direct=0\nlockmem=1g", "lockmem: takes memory from the page cache"),
        ("rw=write\ndirect=0\nend_fsync=1", "end_fsync: writes would count without their flush"),
        ("rw=write\nfill_device=1", "fill_device: would fill the filesystem: give the size with size"),
        ("mem=cudamalloc", "mem: buffers in 'cudamalloc' are not driven"),
        ("iomem=mmap:/dev/dax0.0", "iomem: buffers in 'mmap:/dev/dax0.0' are not driven"),
        ("iodepth=8\niodepth_batch_complete=5", "iodepth_batch_complete: the queue drains before it is filled again"),
        ("prioclass=9", "prioclass: 9 is none of 1 (realtime), 2 (best effort), 3 (idle)"),
        ("cmdprio_percentage=20\ncmdprio=9", "realtime/9: levels are 0 to 7"),
        ("cmdprio_percentage=20\ncmdprio_bssplit=4k/10", "cmdprio_bssplit: with cmdprio_percentage as well"),
        ("cmdprio_bssplit=4k/10/1", "cmdprio_bssplit: '4k/10/1': write it like 64k/25"),
        ("percentage_random=50", "percentage_random: changes the load"),
        ("rw=write\nzero_buffers", "zero_buffers: changes the load"),
        ("iodept=4", "iodept: changes the load and is not driven here: take it out; did you mean 'iodepth'?"),
        ("\x1b[31m=4", "\\x1b[31m: changes the load"),
        ("[b", "write a section as [name]"),
("[b]\nstonewall\nstartdelay=3\nfilename=y\n[c]\nfilename=z", "b: startdelay: behind a stonewall fio counts it"),
        ("".join(f"[{index}]\nbs={512 * (index + 1)}\n" for index in range(64)), "65 jobs with unlike settings"),
        ("include x.fio", "include: "),
        ("include nowhere.fio", "nowhere.fio"),
    ],
)  # fmt: skip
def test_what_changes_the_load_is_refused_by_name(tmp_path: Path, lines: str, words: str) -> None:
    if "nowhere" in lines:
        with pytest.raises(LunscopeError, match=words):
            read(tmp_path, HEAD + lines)
    else:
        assert words in refusal(tmp_path, HEAD + lines)


def test_files_without_a_job(tmp_path: Path) -> None:
    assert "no job in it" in refusal(tmp_path, "; nothing\n")
    assert "no job in it" in refusal(tmp_path, "[global]\nbs=4k\n")
    assert "line 1: bs: stands before any [section]" in refusal(tmp_path, "bs=4k\n[a]\n")
    assert "more than 1000 options" in refusal(tmp_path, "[global]\n" + "bs=4k\n" * 1001)
    assert "more than 1024 sections" in refusal(tmp_path, "[a]\n" * 1025)
    assert "4096 files for each of 1000 clones" in refusal(tmp_path, "[a]\nnumjobs=1000\nnrfiles=4096\n").replace(
        "at most 1024", "4096 files for each of 1000 clones"
    )


def test_files_that_include_each_other_without_end(tmp_path: Path) -> None:
    (tmp_path / "other.inc").write_text("include x.fio\n")
    assert "includes itself" in refusal_anywhere(tmp_path, "include other.inc\n")
    for level in range(20):
        (tmp_path / f"{level}.inc").write_text(f"include {level + 1}.inc\n" * 1000)
    (tmp_path / "20.inc").write_text("")
    assert "more than the 64 that are read" in refusal_anywhere(tmp_path, "include 0.inc\n")


def test_what_does_not_matter_is_named_in_one_warning(tmp_path: Path) -> None:
    found = read(
        tmp_path, HEAD + "group_reporting\nthread\noffset=0\nramp_time=0\nrate_min=0\nverify=none\nzero_buffers\n"
    )
    assert found.warnings == (f"{tmp_path}/x.fio: without effect on the load: group_reporting, thread, zero_buffers",)
    everything = read(tmp_path, HEAD + "".join(f"{name}=1\n" for name in sorted(WITHOUT_EFFECT)))
    assert all(name in everything.warnings[0] for name in WITHOUT_EFFECT)


@pytest.mark.parametrize(
    "lines",
    [
        "file_service_type=sequential\nopenfiles=1",
        "filename=a:b\niodepth=2\nfile_service_type=random:4\nopenfiles=2",
        "rw=write\nunlink_each_loop",
        "filename=/dev/null\nallow_file_create=0",
        "lockmem=1g",
        "mem=mmaphuge:/mnt/huge/file\niomem=malloc",
        "iodepth=8\niodepth_batch_complete_min=4",
        "buffer_compress_percentage=50",
        "rw=write\nend_fsync=1",
        "rw=read\ndirect=0\ninvalidate=0\nfadvise_hint=0\nfsync_on_close",
    ],
)
def test_what_chooses_nothing_beside_these_options_is_a_warning(tmp_path: Path, lines: str) -> None:
    (warning,) = [text for text in read(tmp_path, HEAD + lines).warnings if "evenly" not in text]
    assert "without effect on the load: " in warning


def test_what_a_file_is_made_of_matters_to_those_who_read_it(tmp_path: Path) -> None:
    assert "buffer_pattern: changes the load" in refusal(tmp_path, "[a]\nrw=randread\nsize=1m\nbuffer_pattern=0xaa\n")


@pytest.mark.parametrize("order", ["write", "read"])
def test_data_that_fio_makes_smaller_are_driven_as_they_are_and_said(tmp_path: Path, order: str) -> None:
    lines = f"[a]\nrw={order}\nsize=1m\ndedupe_percentage=50\ndedupe_mode=working_set\nbuffer_compress_percentage=0\n"
    (said,) = [text for text in read(tmp_path, lines).warnings if "made smaller" in text]
    assert said.startswith(f"{tmp_path}/x.fio: dedupe_mode, dedupe_percentage: the data written cannot be made smaller")


def test_a_pattern_that_is_verified_is_said_to_be_written_otherwise(tmp_path: Path) -> None:
    lines = "[a]\nrw=write\nsize=1m\nverify=md5\nverify_pattern=0\n"
    assert any(
        "verify_pattern: the data written cannot be made smaller" in text for text in read(tmp_path, lines).warnings
    )


def test_a_section_without_figures_is_refused_as_all_have_some(tmp_path: Path) -> None:
    assert "stats" in refusal(tmp_path, "[a]\nrw=read\nsize=1m\nstats=0\n")
    assert not any("stats" in text for text in read(tmp_path, "[a]\nrw=read\nsize=1m\nstats=1\n").warnings)


SCAN = (
    "[global]\nfilename={file}\nverify=meta\nbs=4k\n[w]\nrw=write\nfill_device=1\ndo_verify=0\n"
    "[r]\nstonewall\nrw=read\n"
)


def test_a_section_that_reads_back_is_the_verification_of_the_one_that_writes(tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(bytes(1 << 20))
    found = read(tmp_path, SCAN.format(file=file))
    (scenario,) = found.scenarios
    assert (scenario.job.verify, scenario.job.name, scenario.job.knobs.read_pct) == (True, "w", 0)
    assert any("[r] reads back what [w] wrote: that is done by the --verify of [w]" in text for text in found.warnings)
    assert any("fill_device: a file is written to its end" in text for text in found.warnings)
    assert "fill_device: would fill" in refusal(tmp_path, SCAN.format(file=tmp_path / "missing"))
    other = (
        SCAN.format(file=file).replace("rw=read", f"rw=read\nfilename={tmp_path}/other").replace("fill_device=1", "")
    )
    assert "verify: reading what another job wrote is not driven" in refusal(tmp_path, other)


def what_is_wrong(path: Path) -> str:
    try:
        validate_scenario(read_fio(path).scenarios[0])
    except LunscopeError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("rw=read\nbssplit=4k/50:8k/50", "at one of the smallest"),
        ("rw=randwrite\nverify=md5\nverify_backlog=8", "fio reads back while it writes"),
        ("rw=read\ndirect=0", "fio tells the kernel their order"),
        ("rw=read\ndirect=0", "fio drops its files from the page cache"),
        ("rw=randread\nbssplit=4k/50:8k/50", "fio shortens those"),
        ("rw=randread\nnorandommap\nrandom_distribution=normal:10", "fio scatters the bell"),
    ],
)
def test_what_differs_in_the_small_is_a_warning(tmp_path: Path, lines: str, words: str) -> None:
    assert any(words in warning for warning in read(tmp_path, HEAD + lines).warnings)


@pytest.mark.parametrize("flush", Flush)
def test_both_ways_to_flush_are_driven_as_fio_does(tmp_path: Path, flush: Flush) -> None:
    found = read(tmp_path, HEAD + f"rw=randwrite\n{flush}=4\n")
    knobs = found.scenarios[0].job.knobs
    assert (knobs.fsync_every, knobs.flush, found.warnings) == (4, flush, ())
    reads = job(tmp_path, f"rw=randread\n{flush}=4").knobs
    assert (reads.fsync_every, reads.flush) == (None, Flush.FSYNC)


def test_a_usual_job_has_nothing_to_warn_of(tmp_path: Path) -> None:
    lines = "rw=randrw\nbs=8k\niodepth=32\nnumjobs=4\nrate_iops=400\nsize=1g\n"
    assert read(tmp_path, HEAD + lines).warnings == ()
    assert read(tmp_path, HEAD + "rw=read\ndirect=0\ninvalidate=0\nfadvise_hint=0\n").warnings == ()


_NAMES = DRIVEN
_LINES = st.lists(
    st.builds(
        "{}={}".format,
        st.sampled_from(_NAMES),
        st.text("0123456789kmg/:,-.%nainfrdwzot \\", max_size=12),
    )
    | st.text(max_size=30),
    max_size=8,
)


@pytest.mark.slow
@given(_LINES)
@example(["filename=" + "a:" * 3000])
@example(["bs=,,,,", "rw=randrw"])
@example(["nrfiles=1024", "numjobs=1000"])
@example(["bssplit=/:/", "size=1"])
@example(["\x00", "[", "]", "[]", "=", "= =", "include"])
def test_no_text_is_more_than_an_error(tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    folder = tmp_path_factory.getbasetemp()
    path = folder / "any.fio"
    path.write_text("[a]\n" + "\n".join(lines), encoding="utf-8", errors="replace")
    assert what_is_wrong(path).isprintable()


def test_binary_and_devices(tmp_path: Path) -> None:
    (tmp_path / "b.fio").write_bytes(bytes(range(256)))
    with pytest.raises(UsageError, match="not text in UTF-8"):
        read_fio(tmp_path / "b.fio")
    with pytest.raises(UsageError, match="it is a device"):
        read_fio(Path("/dev/zero"))
