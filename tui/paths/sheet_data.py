"""Data of sheets on the screen, live or of a recording: history from the events, totals since counters were cleared."""

from __future__ import annotations

from dataclasses import replace

from collectors.graph import ports_of
from collectors.model import Frame, Sample, Topology
from collectors.paths.groups import lun_name
from collectors.sheets.path_history import NO_HISTORY, PathHistories, path_histories
from collectors.sheets.sheet import Sheet, SheetData
from collectors.sheets.total_facts import totals_section
from collectors.totals.between import LevelTotals, largest_latency_ns, level_totals
from collectors.totals.level import WHOLE_HOST, CountLevel, CountSubject, cleared_at
from engine.events import Event
from engine.text import safe_text
from tui.app_state import AppState
from tui.transport import ReplayTransport

MOST_SAMPLES = 7200
"""Samples of a recording that are read for the largest latency since a mark."""
TOO_LONG = f"more than {MOST_SAMPLES:,} samples since: lunscope report --from FILE --since-mark NAME"
"""Why there is no largest latency of a long time of a recording."""
_TABLES = {"LUN": "disks", "path": "paths", "HBA port": "hbas"}


def subject_of(topology: Topology, table: str, key: str) -> CountSubject:
    """Return what is counted for a row of a frame table."""
    if table == "hbas":
        port = ports_of(topology.graph).get(key)
        return CountSubject(CountLevel.PORT, key, safe_text(key) if port is None else safe_text(port.name))
    name = lun_name(key, topology)
    if table == "paths":
        return CountSubject(CountLevel.PATH, key, name)
    is_multipath = any(lun.key == key and lun.multipath for lun in topology.graph.luns)
    return CountSubject(CountLevel.LUN if is_multipath else CountLevel.DISK, key, name)


class SheetSource:
    """Makes the data of one sheet at each frame; histories and totals of an unchanged moment are kept."""

    def __init__(self, app_state: AppState) -> None:
        self._state = app_state
        self._history: tuple[tuple[int, int], PathHistories] = (-1, -1), NO_HISTORY
        self._totals: dict[tuple[CountLevel, str], tuple[tuple[int, int], LevelTotals | None]] = {}

    def data(self, frame: Frame) -> SheetData:
        """Collect the data at a frame."""
        sample = self._state.history.totals.latest
        tables = {} if sample is None else sample.tables
        return SheetData(frame.topology, tables, frame.time_ns, frame.states_age_s, self._histories(frame))

    def with_totals(self, sheet: Sheet, frame: Frame) -> Sheet:
        """Add the totals of the sheet's own level and of the host since they were cleared."""
        own, host = subject_of(frame.topology, _TABLES[sheet.kind], sheet.key), WHOLE_HOST
        reason = "its counters were not cleared yet"
        sections = [totals_section("Since it was cleared", self.totals(own, frame), reason)]
        if (totals := self.totals(host, frame)) is not None:
            sections.append(totals_section("The host since it was cleared", totals, ""))
        return replace(sheet, sections=(*sheet.sections[:1], *sections, *sheet.sections[1:]))

    def totals(self, subject: CountSubject, frame: Frame) -> LevelTotals | None:
        """Return the totals of a subject since it was cleared; of a recording, at the frame."""
        transport = self._state.transport
        if not isinstance(transport, ReplayTransport):
            return self._state.history.totals.totals(subject)
        mark = cleared_at(self._state.events.all(), subject, frame.time_ns)
        if mark is None:
            return None
        moment = mark.time_ns, frame.time_ns
        known = self._totals.get((subject.level, subject.key))
        if known is None or known[0] != moment:
            known = moment, _recorded_totals(transport, mark, subject, frame)
            self._totals[subject.level, subject.key] = known
        return known[1]

    def _histories(self, frame: Frame) -> PathHistories:
        log = self._state.events
        moment = log.version, frame.time_ns
        if self._history[0] != moment:
            transport = self._state.transport
            first_ns = None if transport.seekable else self._state.history.totals.first_ns
            start_ns = transport.start_ns if first_ns is None else first_ns
            self._history = moment, path_histories(log.all(), start_ns, frame.time_ns)
        return self._history[1]


def _recorded_totals(
    transport: ReplayTransport, mark: Event, subject: CountSubject, frame: Frame
) -> LevelTotals | None:
    """Add up the samples of a recording between a mark and a frame."""
    base, now = (_sample_at(transport, time_ns) for time_ns in (mark.time_ns, frame.time_ns))
    if base is None or now is None:
        return None
    if (now.time_ns - base.time_ns) / 1e9 > MOST_SAMPLES * transport.source.interval_s:
        return replace(level_totals(base, now, subject, None), latency_reason=TOO_LONG)
    between = (step.current for step in transport.source.between(base.time_ns + 1, now.time_ns))
    return level_totals(base, now, subject, largest_latency_ns(between, subject))


def _sample_at(transport: ReplayTransport, time_ns: int) -> Sample | None:
    steps = list(transport.past(time_ns, 1))
    return steps[-1].current if steps else None
