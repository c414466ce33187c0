"""Numbers that people and kernels write: ASCII digits, and nothing that `int` and `float` take besides."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from collectors.session.time_format import parse_when
from engine.errors import UsageError
from engine.job.distribution_text import parse_distribution
from engine.job.formats.choose import read_job
from engine.job.sizes import parse_blocks, parse_duration, parse_size
from engine.job.target_text import parse_lun
from engine.text import decimal_number, signed_number, whole_number
from tui.cli import run_cli

ODD = ["٣", "1_0", "²", "\uff11", "0x10", "", " 1", "1 ", "1\n", "+-1", "9" * 5000]
COUNTED = [
    "--qd",
    "--streams",
    "--stripe-width",
    "--mirror",
    "--threads",
    "--fsync-every",
    "--seed",
]
MEASURED = ["--read-pct", "--rate"]
TIMED = ["--runtime", "--size", "--bs", "--stripe-unit"]


@pytest.mark.parametrize("text", ODD)
def test_odd_digits_are_no_number(text: str) -> None:
    assert whole_number(text) is None
    assert whole_number(text.encode()) is None
    assert signed_number(text) is None
    assert decimal_number(text) is None


def test_plain_numbers_are_read() -> None:
    assert whole_number("0012") == whole_number(b"12") == 12
    assert whole_number("-1") is None
    assert signed_number("-1") == -1
    assert decimal_number("-1.5e3") == -1500
    assert decimal_number(".5") == 0.5
    assert decimal_number("1e999") == math.inf
    assert math.isnan(decimal_number("nan") or 0.0)


@pytest.mark.parametrize("option", [*COUNTED, *MEASURED, *TIMED])
@pytest.mark.parametrize("text", ["٣", "1_0", "\uff19", "9" * 5000])
def test_no_option_of_run_takes_other_digits(
    option: str, text: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    arguments = ["run", option, text, "--save-job", str(tmp_path / "a.toml")]
    assert run_cli(arguments) == 2
    said = capsys.readouterr().err
    assert said.startswith("lunscope: ")
    assert said.count("\n") == 1
    assert len(said) < 1500


@pytest.mark.parametrize("digits", ["٣", "1_0", "\uff19"])
def test_no_text_of_a_job_takes_other_digits(digits: str, tmp_path: Path) -> None:
    for parse, text in (
        (parse_size, f"{digits}k"),
        (parse_blocks, f"4k:{digits},8k:90"),
        (parse_duration, f"{digits}s"),
        (parse_distribution, f"zipf:{digits}"),
        (parse_distribution, f"hot:{digits}/10"),
        (parse_lun, f"sda={digits}"),
    ):
        with pytest.raises(UsageError):
            parse(text)
    for moment in (f"{digits}:00", f"+{digits}s"):
        with pytest.raises(UsageError):
            parse_when(moment, 0, 10**18)
    for name, text in (
        ("a.fio", f"[j]\nrw=read\niodepth={digits}\n"),
        ("b.fio", f"[j]\nrw=read\nruntime={digits}\n"),
        ("c.fio", f"[j]\nrw=randread\nrandom_distribution=zipf:{digits}\n"),
        ("d.ndisk", f"QD -> {digits}\n"),
    ):
        (tmp_path / name).write_text(text)
        with pytest.raises(UsageError):
            read_job(tmp_path / name, ())


@pytest.mark.parametrize("letter", ["\u212a", "\u0130", "\u017f"])
def test_letters_that_fold_to_ascii_are_no_units(letter: str) -> None:
    """KELVIN SIGN, dotted I, long s: equal to k, i and s where case is ignored."""
    with pytest.raises(UsageError):
        parse_size(f"4{letter}b")
    with pytest.raises(UsageError):
        parse_duration(f"4{letter}")
