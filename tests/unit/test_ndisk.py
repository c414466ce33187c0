from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import LunscopeError, UsageError
from engine.job.distribution import Uniform, locality
from engine.job.formats.ndisk import read_ndisk
from engine.job.formats.read_job import ReadJob
from engine.job.scenario import validate_scenario
from engine.job.spec import Access, Backend, BlockShare, TargetSpec
from engine.replacing import replace

STUDY = """
NBROFPROC ->1 4 8 24 48 96 128 256 - threads, one step each
DURATION  -> 5 - seconds per step
ACCESS    -> R - R random, S sequential
RESPONSETIME -> 0.005 0.010 0.015 0.020 0.030 0.050 0.100 0.200 - s
BUCKETS      -> .002 .005 .010 - s: histogram edges
READPROBABILITY -> 0.70
READLOCALITY -> (0.5 0.5) - share of reads that goes to each equal slice
WRITELOCALITY ->(0.33 0.33 0.34)
* RECPERTRK -> 1000
SECPERTRK   -> 128
RECSIZE    -> 4096 - bytes
PDEV       -> 240 - physical devices
NBROFDEV   -> 240 - devices used
"""


def read(folder: Path, text: str) -> ReadJob:
    path = folder / "cache.ndisk"
    path.write_text(text)
    return read_ndisk(path)


def test_the_published_file(tmp_path: Path) -> None:
    found = read(tmp_path, STUDY)
    for scenario in found.scenarios:
        validate_scenario(scenario)
    job, knobs = found.scenarios[0].job, found.scenarios[0].job.knobs
    assert (job.name, job.access, job.backend, job.runtime_s) == ("cache", Access.RANDOM, Backend.THREADS, 40.0)
    assert (knobs.queue_depth, knobs.blocks, knobs.read_pct) == (1, (BlockShare(4096),), 70.0)
    assert (knobs.distribution, knobs.write_distribution) == (locality([50, 50]), locality([33, 33, 34]))
    assert [(turn.at_s, dict(turn.changes)) for turn in found.scenarios[0].turns] == [
        (5.0 * step, {"queue_depth": depth}) for step, depth in enumerate((4, 8, 24, 48, 96, 128, 256), 1)
    ]
    assert job.response_limits_s == (0.005, 0.01, 0.015, 0.02, 0.03, 0.05, 0.1, 0.2)
    assert job.response_edges_s == (0.002, 0.005, 0.01)
    assert [warning.removeprefix(f"{tmp_path}/cache.ndisk: ") for warning in found.warnings] == [
        "NBROFDEV 240: the file names no devices: the targets given with --target are driven",
        "without effect on the load: SECPERTRK, PDEV",
    ]


def test_the_published_file_runs_on_more_devices_than_its_first_steps_have_threads(tmp_path: Path) -> None:
    (scenario,) = read(tmp_path, STUDY).scenarios
    targets = tuple(TargetSpec(f"/dev/{name}") for name in "abcdefghijkl")
    job = replace(scenario.job, targets=targets, knobs=replace(scenario.job.knobs, stripe_width=len(targets)))
    assert job.total_queue_depth
    validate_scenario(replace(scenario, job=job))


def test_a_sequence_has_no_locality(tmp_path: Path) -> None:
    found = read(tmp_path, "ACCESS -> S\nREADLOCALITY -> 0.9 0.1\n")
    assert (found.scenarios[0].job.access, found.scenarios[0].job.knobs.distribution) == (Access.SEQUENTIAL, Uniform())
    assert found.scenarios[0].job.runtime_s is None


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("THREADS -> 4", "line 2: THREADS: unknown: known are NBROFPROC"),
        ("NBROFPROC 4", "line 2: 'NBROFPROC 4': write NAME -> value"),
        ("NBROFPROC -> 0", "NBROFPROC: '0' is no number from 1 to 1000"),
        ("NBROFPROC -> 1.5", "NBROFPROC: 1.5 is not a whole number"),
        ("NBROFPROC -> 1 2", "NBROFPROC: several steps need a DURATION"),
        ("NBROFPROC -> 1e999", "'1e999' is no number"),
        ("NBROFPROC -> " + "1 " * 300, "300 values: give 1 to 256"),
        ("DURATION -> nan", "'nan' is no number"),
        ("DURATION -> - later", "DURATION: 0 values"),
        ("ACCESS -> X", "ACCESS: 'X' is neither R"),
        ("READPROBABILITY -> 70", "'70' is no number from 0 to 1"),
        ("READLOCALITY -> (0.5 0.6)", "READLOCALITY: the shares of the I/Os add up to 110 %, not 100"),
        ("WRITELOCALITY -> (-0.5 1.5)", "'-0.5' is no number"),
        ("RECSIZE -> 1000", "bs: 1000 is not a multiple of 512"),
        ("RECSIZE -> 4096 8192", "RECSIZE: 2 values: give one"),
        ("RESPONSETIME -> soon", "'soon' is no number"),
    ],
)
def test_what_cannot_be_meant(tmp_path: Path, line: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, f"* a comment\n{line}\n")
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"{tmp_path}/cache.ndisk")


@given(st.text(st.sampled_from("NBROFPCDUATIE ->0123456789.()*\nRS"), max_size=80))
def test_no_text_is_more_than_an_error(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.ndisk"
    path.write_text(text)
    assert what_is_wrong(path).isprintable()


def what_is_wrong(path: Path) -> str:
    try:
        validate_scenario(read_ndisk(path).scenarios[0])
    except LunscopeError as error:
        return str(error)
    return ""
