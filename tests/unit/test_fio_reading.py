"""What job files of fio are read as: tests/unit/golden/fio has options, the jobs they make, refusals and warnings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from engine.errors import LunscopeError, UsageError
from engine.job.formats.fio_file import read_fio
from engine.job.formats.fio_ignored import WITHOUT_EFFECT
from engine.job.formats.fio_job import DRIVEN
from engine.job.formats.fio_sections import fio_lines, sections_of
from engine.job.formats.read_job import ReadJob
from engine.job.group import LoadGroup
from engine.job.scenario import Scenario, dump_scenario, validate_scenario
from engine.job.spec import BlockShare, JobSpec, TargetSpec
from engine.sweep.axes import parse_axis
from engine.sweep.limit import Limit
from tests.golden import assert_golden
from tui.options.run_jobs import with_steady_search

GOLDEN = sorted(Path(__file__).parent.glob("golden/fio/*.txt"))
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


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_files_mean_what_was_accepted(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines without a section are options of a usual job on one device; a file of a megabyte is there."""
    monkeypatch.chdir(tmp_path)
    Path("megabyte").write_bytes(bytes(1 << 20))
    usual = _lines(_read(HEAD).phases[0])

    def say(text: str) -> str:
        is_whole = text.startswith(";") or any(line.strip().startswith("[") for line in text.split("\n"))
        found = _read(text if is_whole else HEAD + text)
        return "\n".join(_said(found, DEFAULT if is_whole else usual)) or "as usual"

    assert_golden(path, say)


def _read(text: str) -> ReadJob:
    Path("x.fio").write_text(text)
    return read_fio(Path("x.fio"), ())


def _said(found: ReadJob, usual: list[str]) -> Iterator[str]:
    for number, phase in enumerate(found.phases):
        if number:
            yield "then"
        lines = _lines(phase)
        yield from (line for line in lines if line not in usual)
        keys = {line.split(" = ")[0] for line in lines}
        yield from (f"without {line}" for line in usual if line.split(" = ")[0] not in keys)
    if found.search is not None:
        parse_axis(found.search.vary)
        assert found.search.slo is None or Limit.parse(found.search.slo).limit_ns > 0
        yield f"search: {found.search.vary} {found.search.slo}: {found.search.refusal}"
    if found.scratch_folder is not None:
        yield f"scratch files in {found.scratch_folder}"
    yield from (f"warning: {warning}" for warning in found.warnings)


def _lines(phase: Scenario | LoadGroup) -> list[str]:
    if isinstance(phase, LoadGroup):
        return [line for load in phase.loads for line in ("at the same time", *_lines(Scenario(load.job)))]
    validate_scenario(phase)
    return [line for line in dump_scenario(phase).split("\n") if " = " in line]


DEFAULT = _lines(Scenario(JobSpec()))


def refusal_anywhere(folder: Path, text: str) -> str:
    """Return why a file, or one it includes, is refused."""
    with pytest.raises(UsageError) as caught:
        read(folder, text)
    return str(caught.value)


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


def test_a_file_that_fio_would_find_is_named(tmp_path: Path) -> None:
    (tmp_path / "a.0.0").write_text("left by fio")
    (warning,) = read(tmp_path, f"[a]\ndirectory={tmp_path}\nsize=1m\nfadvise_hint=0\ninvalidate=0\n").warnings
    assert f"fio would use {tmp_path}/a.0.0, which exists" in warning


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


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("bs=" + "(" * 999 + "1" + ")" * 999, "is not a whole number from 0"),
        ("bssplit=" + ":".join(["4k/0.1"] * 1000), "1000 shares: at most 256"),
        ("\x1b[31m=4", "\\x1b[31m: changes the load"),
        ("".join(f"[{index}]\nbs={512 * (index + 1)}\n" for index in range(64)), "65 jobs with unlike settings"),
    ],
)
def test_long_and_hostile_lines_are_refused(tmp_path: Path, lines: str, words: str) -> None:
    assert words in refusal(tmp_path, HEAD + lines)


def test_very_many_lines_are_refused(tmp_path: Path) -> None:
    assert "more than 1000 options" in refusal(tmp_path, "[global]\n" + "bs=4k\n" * 1001)
    assert "more than 1024 sections" in refusal(tmp_path, "[a]\n" * 1025)


def test_files_that_include_each_other_without_end(tmp_path: Path) -> None:
    (tmp_path / "other.inc").write_text("include x.fio\n")
    assert "includes itself" in refusal_anywhere(tmp_path, "include other.inc\n")
    for level in range(20):
        (tmp_path / f"{level}.inc").write_text(f"include {level + 1}.inc\n" * 1000)
    (tmp_path / "20.inc").write_text("")
    assert "more than the 64 that are read" in refusal_anywhere(tmp_path, "include 0.inc\n")


def test_what_does_not_matter_is_named_in_one_warning(tmp_path: Path) -> None:
    everything = read(tmp_path, HEAD + "".join(f"{name}=1\n" for name in sorted(WITHOUT_EFFECT)))
    assert all(name in everything.warnings[0] for name in WITHOUT_EFFECT)


def what_is_wrong(path: Path) -> str:
    try:
        validate_scenario(read_fio(path).scenarios[0])
    except LunscopeError as error:
        return str(error)
    return ""


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
