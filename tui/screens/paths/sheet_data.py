"""Data of sheets on the screen, live or of a recording: history from the events, totals since counters were cleared."""

from __future__ import annotations

import threading
from collections.abc import Callable

from msgspec import Struct, field

from collectors.graph import ports_of, targets_of
from collectors.model import Frame, Sample, Topology
from collectors.paths.groups import lun_name, target_name
from collectors.reports.sheets.facts import totals_section
from collectors.reports.sheets.path_history import NO_HISTORY, PathHistories, path_histories
from collectors.reports.sheets.sheet import Sheet, SheetData, SheetSection
from collectors.reports.totals.level import (
    WHOLE_HOST,
    CountLevel,
    CountSubject,
    LevelTotals,
    cleared_at,
    largest_latency_ns,
    level_totals,
)
from engine.background_call import BackgroundCall
from engine.errors import LunscopeError
from engine.replacing import replace
from engine.text import safe_text
from tui.app_state import AppState
from tui.transport import SECOND_NS, ReplayTransport

_NOT_CLEARED = "its counters were not cleared yet"
_TABLES = {"LUN": "disks", "path": "paths", "HBA port": "hbas", "target port": "target_ports"}
MOST_SAMPLES = 7200
"""Samples that are read for the largest latency since a mark."""
TOO_LONG = f"more than {MOST_SAMPLES:,} samples since: lunscope report --from FILE --since-mark NAME"
"""Why there is no largest latency of a longer time."""
BEING_READ = "being read from the recording"
_NOTHING = "the recording has no samples of that time"
_AT_ONCE_S = 0.03
"""How long the screen waits for what takes no longer: one step of a replay shows no gap."""


def subject_of(topology: Topology, table: str, key: str) -> CountSubject:
    """Return what is counted for a row of a frame table."""
    if table == "hbas":
        port = ports_of(topology.graph).get(key)
        return CountSubject(CountLevel.PORT, key, safe_text(key) if port is None else safe_text(port.name))
    if table == "target_ports":
        target = targets_of(topology.graph).get(key)
        return CountSubject(CountLevel.TARGET, key, safe_text(key) if target is None else target_name(target))
    name = lun_name(key, topology)
    if table == "paths":
        return CountSubject(CountLevel.PATH, key, name)
    is_multipath = any(lun.key == key and lun.multipath for lun in topology.graph.luns)
    return CountSubject(CountLevel.LUN if is_multipath else CountLevel.DISK, key, name)


class SheetSource:
    """Makes the data of one sheet at each frame; histories of an unchanged moment are kept."""

    def __init__(self, app_state: AppState, changed: Callable[[], object]) -> None:
        """Take the state; `changed` is called from a thread when totals of a recording were read."""
        self._state = app_state
        self._history: tuple[tuple[int, int], PathHistories] = (-1, -1), NO_HISTORY
        transport = app_state.transport
        self._recorded = RecordedTotals(transport, changed) if isinstance(transport, ReplayTransport) else None

    def close(self) -> None:
        """Give up what is being read of a recording."""
        if self._recorded is not None:
            self._recorded.close()

    def data(self, frame: Frame) -> SheetData:
        """Collect the data at a frame."""
        sample = self._state.history.totals.latest
        tables = {} if sample is None else sample.tables
        return SheetData(frame.topology, tables, frame.time_ns, frame.states_age_s, self._histories(frame))

    def with_totals(self, sheet: Sheet, frame: Frame) -> Sheet:
        """Add the totals of the sheet's own level and of the host since they were cleared."""
        own = subject_of(frame.topology, _TABLES[sheet.kind], sheet.key)
        sections = [_section("Since it was cleared", self.totals(own, frame))]
        if (host := self.totals(WHOLE_HOST, frame)) != _NOT_CLEARED:
            sections.append(_section("The host since it was cleared", host))
        return replace(sheet, sections=(*sheet.sections[:1], *sections, *sheet.sections[1:]))

    def totals(self, subject: CountSubject, frame: Frame) -> LevelTotals | str:
        """Return the totals of a subject since it was cleared, in a recording at the frame; or why there are none."""
        if self._recorded is None:
            return self._state.history.totals.totals(subject) or _NOT_CLEARED
        mark = cleared_at(self._state.events.all(), subject, frame.time_ns)
        return _NOT_CLEARED if mark is None else self._recorded.of(subject, mark.time_ns, frame.time_ns)

    def _histories(self, frame: Frame) -> PathHistories:
        log = self._state.events
        moment = log.version, frame.time_ns
        if self._history[0] != moment:
            transport = self._state.transport
            first_ns = None if transport.seekable else self._state.history.totals.first_ns
            start_ns = transport.start_ns if first_ns is None else first_ns
            self._history = moment, path_histories(log.all(), start_ns, frame.time_ns)
        return self._history[1]


def _section(title: str, totals: LevelTotals | str) -> SheetSection:
    return totals_section(title, None, totals) if isinstance(totals, str) else totals_section(title, totals, "")


class _Largest(Struct, frozen=True):
    """The largest latency from a mark up to a sample."""

    mark_ns: int
    upto_ns: int
    latency_ns: int | None


class _ReadTotals(Struct):
    """Reads for one subject and moment."""

    mark_ns: int
    now_ns: int
    given_up: threading.Event = field(default_factory=threading.Event)
    call: BackgroundCall[LevelTotals | str] | None = None


class RecordedTotals:
    """Reads what was done between a mark and the moment shown; at the next moment only what came since."""

    def __init__(self, transport: ReplayTransport, changed: Callable[[], object]) -> None:
        self._transport = transport
        self._changed = changed
        """Called from a thread when totals are there."""
        self._readings: dict[tuple[CountLevel, str], _ReadTotals] = {}
        self._largest: dict[tuple[CountLevel, str], _Largest] = {}

    def of(self, subject: CountSubject, mark_ns: int, now_ns: int) -> LevelTotals | str:
        """Return the totals of a subject, or why there are none (yet)."""
        which = subject.level, subject.key
        reading = self._readings.get(which)
        if reading is None or (reading.mark_ns, reading.now_ns) != (mark_ns, now_ns):
            if reading is not None:
                reading.given_up.set()
            self._readings[which] = reading = self._begun(subject, _ReadTotals(mark_ns, now_ns))
        if reading.call is None or not reading.call.done.wait(_AT_ONCE_S):
            return BEING_READ
        try:
            return reading.call.result()
        except LunscopeError as error:
            return str(error)

    def close(self) -> None:
        """Give up what is being read."""
        for reading in self._readings.values():
            reading.given_up.set()

    def _begun(self, subject: CountSubject, reading: _ReadTotals) -> _ReadTotals:
        def read() -> LevelTotals | str:
            try:
                return self._read(subject, reading)
            finally:
                self._changed()

        reading.call = BackgroundCall(read, "lunscope-totals")
        return reading

    def _read(self, subject: CountSubject, reading: _ReadTotals) -> LevelTotals | str:
        base, now = (self._sample_at(time_ns) for time_ns in (reading.mark_ns, reading.now_ns))
        if base is None or now is None:
            return _NOTHING
        if now.time_ns - base.time_ns > MOST_SAMPLES * self._transport.source.interval_s * SECOND_NS:
            return replace(level_totals(base, now, subject, None), latency_reason=TOO_LONG)
        return level_totals(base, now, subject, self._largest_latency_ns(subject, reading, base))

    def _largest_latency_ns(self, subject: CountSubject, reading: _ReadTotals, base: Sample) -> int | None:
        which = subject.level, subject.key
        known = self._largest.get(which)
        if known is None or known.mark_ns != reading.mark_ns or known.upto_ns > reading.now_ns:
            known = _Largest(reading.mark_ns, base.time_ns, None)
        for step in self._transport.source.between(known.upto_ns + 1, reading.now_ns):
            if reading.given_up.is_set():
                break
            sample = step.current
            if sample.time_ns > known.upto_ns:
                latencies = known.latency_ns, largest_latency_ns((sample,), subject)
                latency_ns = max((value for value in latencies if value is not None), default=None)
                known = _Largest(reading.mark_ns, sample.time_ns, latency_ns)
        self._largest[which] = known
        return known.latency_ns

    def _sample_at(self, time_ns: int) -> Sample | None:
        return next((step.current for step in self._transport.past(time_ns, 1)), None)
