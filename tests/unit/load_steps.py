"""Samples of a load whose knobs are turned at given times, as a source would yield them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from collectors.model import MISSING, Histograms, HistogramScale, Rows, Sample, Step, Table, Topology
from collectors.tables.load.schema import LOAD
from engine.events import Event, EventKind
from engine.results.histogram import SUB_BITS, UNIT_NS

SECOND_NS = 1_000_000_000
WALL_NS = 1_700_000_000 * SECOND_NS
TOPOLOGY = Topology()
SCALE = HistogramScale(UNIT_NS, SUB_BITS)


@dataclass(frozen=True)
class Stretch:
    """One setting of the knobs: how long it lasts, and what the load does in it."""

    seconds: float
    iops: int
    latency_ns: int = 1_000_000
    turns: bool = True
    """Whether it begins with the turn of a knob; else the load changes by itself."""


@dataclass(frozen=True)
class RecordedRun:
    """Samples and events of one run, or of several one after the other."""

    steps: tuple[Step, ...]
    events: tuple[Event, ...]

    def until(self, now_ns: int) -> list[Step]:
        return [step for step in self.steps if step.current.monotonic_ns <= now_ns]


def recorded_run(
    stretches: Sequence[Stretch], *, interval_s: float = 1.0, run: int = 1, start_s: float = 1000.0, idle: int = 2
) -> RecordedRun:
    """Make a run whose knobs are turned between the stretches, followed by `idle` samples without a load."""
    start_ns = round(start_s * SECOND_NS)
    turned_ns = [start_ns + round(sum(one.seconds for one in stretches[:n]) * SECOND_NS) for n in range(len(stretches))]
    end_ns = start_ns + round(sum(one.seconds for one in stretches) * SECOND_NS)
    events = [_event(EventKind.LOAD, "load started", start_ns, backend="uring", job="")]
    knobs_ns = [moment for one, moment in zip(stretches, turned_ns, strict=True) if one.turns]
    for epoch, moment in enumerate(knobs_ns[1:], 1):
        data: dict[str, str | float | None] = {"knob": "queue_depth", "from": epoch, "to": epoch + 1, "epoch": epoch}
        events.append(_event(EventKind.KNOB, f"queue depth {epoch} -> {epoch + 1}", moment, **data))
    events.append(_event(EventKind.LOAD, "load stopped", end_ns, ended="stopped"))
    count = int((end_ns - start_ns) / SECOND_NS / interval_s)
    moments = [start_ns + round((number + 0.4) * interval_s * SECOND_NS) for number in range(count + 1 + idle)]
    rows = Rows((f"load:{run}:0",), ("/dev/x",))
    samples = list(_samples(stretches, (*turned_ns, end_ns), moments, events, rows))
    steps = (Step(None, samples[0]), *(Step(before, after) for before, after in pairwise(samples)))
    return RecordedRun(steps, tuple(events))


def _event(kind: EventKind, text: str, moment_ns: int, **data: str | float | None) -> Event:
    return Event(kind, text, WALL_NS + moment_ns, moment_ns, data)


def _samples(
    stretches: Sequence[Stretch], opened_ns: Sequence[int], moments: Sequence[int], events: Sequence[Event], rows: Rows
) -> Iterator[Sample]:
    before_ns, over = 0, False
    for moment in moments:
        new = tuple(event for event in events if before_ns < event.monotonic_ns <= moment)
        if over:
            yield Sample(WALL_NS + moment, moment, TOPOLOGY, events=new)
        else:
            yield _sample(stretches, opened_ns, (before_ns, moment), rows, new)
        before_ns, over = moment, moment >= opened_ns[-1]


def _sample(
    stretches: Sequence[Stretch],
    opened_ns: Sequence[int],
    interval: tuple[int, int],
    rows: Rows,
    events: tuple[Event, ...],
) -> Sample:
    """Count what each stretch did up to a moment; in the interval, I/Os of every stretch that touches it."""
    began_ns, moment = interval
    values = np.full((1, len(LOAD.columns)), MISSING, np.uint64)
    ios = latency_ns = 0
    cells: list[tuple[int, int]] = []
    for one, opens_ns, closes_ns in zip(stretches, opened_ns, opened_ns[1:], strict=False):
        done = one.iops * max(0, min(moment, closes_ns) - opens_ns) // SECOND_NS
        earlier = one.iops * max(0, min(began_ns, closes_ns) - opens_ns) // SECOND_NS
        ios += done
        latency_ns += done * one.latency_ns
        if done > earlier:
            cells.append((one.latency_ns, done - earlier))
    epoch = sum(one.turns and opened <= moment for one, opened in zip(stretches, opened_ns, strict=False)) - 1
    peak_ns = max((latency for latency, _count in cells), default=0)
    known = {
        "read_ios": ios,
        "read_latency_ns": latency_ns,
        "read_peak_ns": peak_ns,
        "epoch": max(epoch, 0),
        **dict.fromkeys(("write_ios", "write_latency_ns", "write_peak_ns", "errors"), 0),
    }
    for name, value in known.items():
        values[0, LOAD.index(name)] = value
    histograms = {"load": _histograms(rows, cells)}
    return Sample(WALL_NS + moment, moment, TOPOLOGY, {"load": Table(LOAD, rows, values)}, histograms, events)


def _histograms(rows: Rows, cells: Sequence[tuple[int, int]]) -> Histograms:
    zeros = np.zeros(len(cells), np.uint32)
    bucket = np.array([_bucket(latency) for latency, _count in cells], np.uint16)
    count = np.array([count for _latency, count in cells], np.uint64)
    return Histograms(SCALE, rows, ("read", "write"), zeros, zeros.astype(np.uint8), bucket, count)


def _bucket(latency_ns: int) -> int:
    """Log-linear bucket as collectors.model.HistogramScale says."""
    units = latency_ns // SCALE.unit_ns
    octave = max(units.bit_length() - 1 - SCALE.sub_bits, 0)
    return (octave << SCALE.sub_bits) + (units >> octave)
