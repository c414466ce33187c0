"""What is recorded is what is read: every number, name, event and object."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collectors.model import MISSING, Column, Kind, Rows, Sample, Schema, Table, Topology
from collectors.session.format import SEGMENT_TICKS
from collectors.session.reader import SessionReader
from collectors.session.writer import SessionWriter
from tests.session_samples import Machine, assert_same, note, single

_TEXT = st.text(max_size=6)
_COUNTS = st.one_of(st.integers(0, 2**64 - 1), st.integers(0, 1000), st.just(int(MISSING)))


def record(path: Path, samples: list[Sample]) -> None:
    with SessionWriter(path) as writer:
        for sample in samples:
            writer.write(sample)


@st.composite
def _samples(draw: st.DrawFn) -> list[Sample]:
    """Tables with rows that come, go, change places and return, and schemas that change."""
    kinds = draw(st.lists(st.sampled_from(list(Kind)), min_size=1, max_size=4))
    schemas = [Schema("t", tuple(Column(f"c{i}", kind) for i, kind in enumerate(kinds[:n]))) for n in (1, len(kinds))]
    samples = []
    for tick in range(draw(st.integers(1, 12))):
        schema = draw(st.sampled_from(schemas))
        keys = draw(st.lists(_TEXT, unique=True, max_size=5))
        rows = Rows(tuple(keys), tuple(draw(st.lists(_TEXT, min_size=len(keys), max_size=len(keys)))))
        cells = len(keys) * len(schema.columns)
        samples.append(single(tick, schema, rows, draw(st.lists(_COUNTS, min_size=cells, max_size=cells))))
    return samples


@pytest.mark.slow
@settings(deadline=None, max_examples=60)
@given(_samples(), st.data())
def test_any_samples_come_back_in_any_order(samples: list[Sample], data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.lun"
        record(path, samples)
        with SessionReader(path) as reader:
            assert len(reader) == len(samples)
            for index in data.draw(st.permutations(range(len(samples)))):
                assert_same(reader.sample_at(index), samples[index])


@pytest.fixture(scope="module")
def long_recording(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[Sample]]:
    machine = Machine()
    samples = [machine.sample(*([note(f"at {tick}")] if tick % 50 == 7 else [])) for tick in range(SEGMENT_TICKS + 70)]
    path = tmp_path_factory.mktemp("session") / "long.lun"
    record(path, samples)
    return path, samples


@pytest.mark.slow
def test_a_long_recording_comes_back_forward_backward_and_at_random(long_recording: tuple[Path, list[Sample]]) -> None:
    path, samples = long_recording
    with SessionReader(path) as reader:
        assert reader.notice == ""
        assert reader.interval_s == pytest.approx(1.0)
        for index, step in enumerate(reader.steps(0, len(samples))):
            assert_same(step.current, samples[index])
            assert (step.previous is None) == (index == 0)
            if step.previous is not None:
                assert_same(step.previous, samples[index - 1])
        for index in (SEGMENT_TICKS + 5, SEGMENT_TICKS, SEGMENT_TICKS - 1, 61, 60, 59, 1, 0):
            assert_same(reader.sample_at(index), samples[index])
        for index in np.random.default_rng(3).integers(0, len(samples), 60).tolist():
            assert_same(reader.sample_at(index), samples[index])


@pytest.mark.slow
def test_what_stays_the_same_is_the_same_object(long_recording: tuple[Path, list[Sample]]) -> None:
    path, _ = long_recording
    with SessionReader(path) as reader:
        steps = list(reader.steps(1, 100)) + list(reader.steps(SEGMENT_TICKS - 2, SEGMENT_TICKS + 2))
        first = steps[0].current
        for step in steps:
            assert step.current.topology is first.topology
            assert step.current.tables["disk"].rows is first.tables["disk"].rows


@pytest.mark.slow
def test_seeking_equals_decoding_straight_through(long_recording: tuple[Path, list[Sample]]) -> None:
    path, samples = long_recording
    with SessionReader(path) as reader:
        for index in (0, 1, 59, 60, 61, 1000, len(samples) - 1):
            time_ns = samples[index].time_ns
            assert reader.index_at(time_ns) == index
            assert reader.index_at(time_ns + 10) == index
            assert reader.index_at(time_ns - 1) == max(0, index - 1)
        assert reader.index_at(0) == 0
        assert reader.index_at(2**63) == len(samples) - 1


def test_columns_tables_and_kinds_of_a_later_version_are_carried_along(tmp_path: Path) -> None:
    later = Schema("warp", (Column("flux", Kind.COUNTER), Column("reads", Kind.GAUGE)))
    rows = Rows(("a",), ("a",))
    path = tmp_path / "later.lun"
    record(path, [single(0, later, rows, [1, 2]), single(1, later, rows, [3, 4])])
    with SessionReader(path) as reader:
        sample = reader.sample_at(1)
        assert sample is not None
        assert sample.tables["warp"].schema == later
        assert sample.tables["warp"].column("flux").tolist() == [3]


def test_an_event_outside_a_sample_comes_with_the_next(tmp_path: Path) -> None:
    path, machine = tmp_path / "notes.lun", Machine()
    with SessionWriter(path) as writer:
        writer.write(machine.sample())
        writer.add_event(note("between"))
        writer.write(machine.sample())
        writer.add_event(note("after"))
    with SessionReader(path) as reader:
        second = reader.sample_at(1)
        assert second is not None
        assert second.events == (note("between"),)
        assert [event.text for event in reader.events()] == ["between", "after"]


def test_values_need_not_be_contiguous(tmp_path: Path) -> None:
    schema = Schema("t", (Column("a", Kind.COUNTER), Column("b", Kind.COUNTER)))
    values = np.arange(40, dtype=np.uint64).reshape(10, 4)[::2, ::2]
    rows = Rows(tuple("abcde"), tuple("abcde"))
    path = tmp_path / "strided.lun"
    record(path, [Sample(1, 1, Topology(), {"t": Table(schema, rows, values)})])
    with SessionReader(path) as reader:
        sample = reader.sample_at(0)
        assert sample is not None
        np.testing.assert_array_equal(sample.tables["t"].values, values)
