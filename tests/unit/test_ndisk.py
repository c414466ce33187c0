from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.errors import LunscopeError
from engine.job.distribution import locality
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
