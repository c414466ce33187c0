"""The history of latencies without a screen: filled from a recording, as a report or an export would."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from collectors.latency.history import LatencyHistory
from collectors.latency.load_waterfall import load_waterfall
from collectors.latency.recording_peaks import RecordingPeaks
from collectors.latency.subjects import WHOLE_LOAD, LatencySubject, first_subject, offered_subjects
from collectors.model import Step
from collectors.rates import derive
from collectors.session.reader import SessionReader
from collectors.sources.replay import ReplaySource

RECORDINGS = Path(__file__).parents[1] / "recordings"
LOAD = RECORDINGS / "load.luns"
PATIENCE_S = 60.0
EVER = (0, 2**62)


def steps_of(recording: Path) -> list[Step]:
    with SessionReader(recording) as reader:
        return list(reader.steps(0, len(reader) - 1))


def filled(steps: list[Step]) -> LatencyHistory:
    history = LatencyHistory()
    for step in steps:
        history.add(step)
    return history


def test_every_io_of_the_load_is_in_the_histograms_that_are_kept() -> None:
    steps = steps_of(LOAD)
    history = filled(steps)
    assert history.follow(WHOLE_LOAD)
    ticks = history.ticks()
    assert ticks is not None
    first, last = (step.current.tables["load"] for step in (steps[0], steps[-1]))
    done = [
        int(sum(table.values[:, table.schema.index(f"{way}_ios")].sum() for way in ("read", "write")))
        for table in (first, last)
    ]
    assert int(ticks.count.sum()) == done[1] - done[0] > 0


@pytest.mark.parametrize("name", ["load", "multipath"])
def test_peaks_are_the_largest_of_the_recording(name: str) -> None:
    steps = steps_of(RECORDINGS / f"{name}.luns")
    history = filled(steps)
    peaks = history.peaks(*EVER, 1000)
    assert peaks == sorted(peaks, key=lambda peak: -peak.latency_ns)
    largest_ms = max(
        float(table.columns["max_ms"][row])
        for step in steps
        for table_name, table in derive(step.previous, step.current).tables.items()
        if table_name in {"disks", "paths", "load"} and "max_ms" in table.columns
        for row in range(len(table.rows))
        if table.columns["max_ms"][row] == table.columns["max_ms"][row]
    )
    assert peaks[0].latency_ns / 1e6 == pytest.approx(largest_ms, rel=1e-6)
    slow = history.slow_ios(*EVER, 10)
    assert len(slow) == 10
    assert slow == sorted(slow, key=lambda io: -io.latency_ns)


@pytest.mark.parametrize("name", ["load", "multipath"])
def test_the_slowest_ios_of_a_subject_are_those_of_all_on_its_devices(name: str) -> None:
    history = filled(steps_of(RECORDINGS / f"{name}.luns"))
    every = history.slow_ios(*EVER, 1_000_000)
    keys = {io.device_key for io in every}
    assert len(keys) > 1
    for key in keys:
        own = [io for io in every if io.device_key == key]
        subject = LatencySubject(key, "trace", frozenset({key}))
        assert history.slow_ios(*EVER, 1_000_000, subject) == own
        assert history.slow_ios(*EVER, 3, subject) == own[:3]


def test_peaks_of_a_recording_are_found_without_a_cursor() -> None:
    source = ReplaySource(LOAD)
    found = RecordingPeaks(source, 5)
    try:
        found.begin()
        deadline = time.monotonic() + PATIENCE_S
        while found.share < 1.0 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert found.peaks() == filled(steps_of(LOAD)).peaks(*EVER, 5)
    finally:
        found.close()
        source.close()


def test_subjects_are_those_that_have_histograms() -> None:
    steps = steps_of(LOAD)
    frame, offered = derive(steps[-1].previous, steps[-1].current), filled(steps).offered()
    assert first_subject(frame, offered) == WHOLE_LOAD
    sources = {subject.source for subject in offered_subjects(frame, offered)}
    assert sources == {"load", "trace"}


def test_a_waterfall_without_charts_says_why_there_is_no_mean() -> None:
    steps = steps_of(LOAD)
    frame = derive(steps[-1].previous, steps[-1].current)
    found = load_waterfall(filled(steps), lambda _table, _key: None, frame, *EVER)
    assert found.mean is None
    assert found.caveat == "no figures of its device"
