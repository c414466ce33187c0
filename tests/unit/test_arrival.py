"""The open loop in jobs, results and figures; how it runs is in tests/kernel/test_engine_arrival.py."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from collectors.model import Histograms, HistogramScale, Rows
from collectors.rates import derive
from engine.aio.stats import Epoch, cells_of
from engine.backend.protocol import Cells
from engine.errors import UsageError
from engine.job.file import dump_job, parse_job
from engine.job.spec import Arrival, Backend, JobSpec, Knobs
from engine.job.validate import validate
from engine.replacing import replace
from engine.results.histogram import bucket_of
from engine.results.measured import Split
from engine.results.result import About, EngineFacts, RunResult, epoch_result
from engine.results.result_document import run_document
from tests.unit import raw_samples as raw
from tests.unit.documents.printed import run_text, unwrapped
from tests.unit.synthetic import Io, epoch

OPEN = JobSpec(arrival=Arrival.POISSON, knobs=Knobs(queue_depth=8, rate_iops=5000.0))


@dataclass(frozen=True)
class OpenEpoch:
    """An epoch whose I/Os were served in a tenth of their latency."""

    closed: Epoch
    skipped: NDArray[np.uint64]
    services: NDArray[np.uint64]
    service_cells: Cells

    def __getattr__(self, name: str) -> object:
        return getattr(self.closed, name)


def open_result(skipped: int) -> RunResult:
    latencies = [10_000 * (number + 1) for number in range(100)]
    closed = epoch([Io(latency_ns=latency, at_s=0.1) for latency in latencies], knobs=OPEN.knobs, targets=1)
    counter = Counter((0, 0, bucket_of(latency // 10)) for latency in latencies)
    services = np.array([[[sum(latencies) // 10, 1000, 100_000], [0, 0, 0]]], np.uint64)
    stats = OpenEpoch(closed, np.array([skipped], np.uint64), services, cells_of(counter))
    result = epoch_result(stats, ("a",), 0, 0)  # type: ignore[arg-type]
    about = About(OPEN, EngineFacts("uring", "asked for", ()), ("a",), (), (), "runtime", 2.0)
    total = Split(result.split.read, result.split.write, result.split.total)
    return RunResult(about, (result,), total, (), cpu_ns=0, completed_ios=100, skipped=skipped)


def test_an_open_loop_needs_a_rate_and_a_native_engine() -> None:
    validate(OPEN)
    with pytest.raises(UsageError, match="--rate: --arrival poisson needs one"):
        validate(replace(OPEN, knobs=Knobs()))
    with pytest.raises(UsageError, match="--arrival: the aio engine runs closed loops only"):
        validate(replace(OPEN, backend=Backend.AIO))


def test_service_time_and_skipped_arrivals_are_in_the_document() -> None:
    document = run_document(open_result(skipped=25))
    assert document["skipped"] == 25
    total = document["total"]
    assert isinstance(total, dict)
    assert total["latency_us"]["mean"] == pytest.approx(505.0)
    assert total["service_us"]["mean"] == pytest.approx(50.5)
    assert total["service_us"]["p99"] == pytest.approx(99, rel=0.01)
    epochs = document["epochs"]
    assert isinstance(epochs, list)
    assert epochs[0]["skipped"] == epochs[0]["targets"][0]["skipped"] == 25


def test_the_summary_has_a_row_of_service_times_and_says_what_was_skipped() -> None:
    text = run_text(open_result(skipped=25))
    _, rows = text.split("From submit to completion, without the wait for a free slot:")
    assert rows.splitlines()[3].split()[:2] == ["reads", "0.0505"]
    assert "overload: 25 arrivals (20 %) found no free slot" in unwrapped(text)
    assert "overload" not in run_text(open_result(skipped=0))


def test_service_times_of_an_interval() -> None:
    who = Rows(("load:1:0", "load:1:1"), ("a", "b"))
    after = {"read_ios": 200, "read_latency_ns": 8_000_000, "read_service_ns": 2_000_000, "skipped": 30}
    closed = {"read_ios": 100, "read_latency_ns": 8_000_000}
    services = Histograms(
        HistogramScale(1, 6),
        who,
        ("read", "write"),
        np.zeros(1, np.uint32),
        np.zeros(1, np.uint8),
        np.array([40], np.uint16),
        np.array([200], np.uint64),
    )
    now = raw.sample(2, load=raw.load(who, after, closed))
    sample = replace(now, histograms={"load_service": services})
    tables = derive(raw.sample(0, load=raw.load(who, {}, {})), sample).tables
    load, total = tables["load"], tables["load_total"]
    assert load.value("service_ms", 0) == pytest.approx(0.01)
    assert load.value("service_p99_ms", 0) == pytest.approx(40e-6)
    assert load.value("in_flight", 0) == pytest.approx(0.001), "an arrival that waits is not outstanding"
    assert load.value("in_flight", 1) == pytest.approx(0.004)
    assert load.value("skipped_per_s", 0) == 15.0
    assert math.isnan(load.value("service_ms", 1)), "in a closed loop the latency is the service time"
    assert load.value("skipped_per_s", 1) == 0.0
    assert total.value("skipped_per_s", 0) == 15.0


def test_polling_is_the_ring_engines() -> None:
    validate(JobSpec(poll=True))
    for backend in (Backend.THREADS, Backend.AIO):
        with pytest.raises(UsageError, match=f"--poll: the {backend} engine sleeps"):
            validate(JobSpec(poll=True, backend=backend))
    assert parse_job("poll = true").poll
    assert parse_job(dump_job(JobSpec(poll=True))).poll
    with pytest.raises(UsageError, match="line 1: poll: 1 is not true or false"):
        parse_job("poll = 1")
