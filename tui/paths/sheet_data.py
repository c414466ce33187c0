"""Data of sheets on the screen, live or of a recording: history from the events, totals since counters were cleared."""

from __future__ import annotations

from collections.abc import Callable

from collectors.graph import ports_of
from collectors.model import Frame, Topology
from collectors.paths.groups import lun_name
from collectors.sheets.path_history import NO_HISTORY, PathHistories, path_histories
from collectors.sheets.sheet import Sheet, SheetData, SheetSection
from collectors.sheets.total_facts import totals_section
from collectors.totals.between import LevelTotals
from collectors.totals.level import WHOLE_HOST, CountLevel, CountSubject, cleared_at
from engine.replacing import replace
from engine.text import safe_text
from tui.app_state import AppState
from tui.paths.recorded_totals import RecordedTotals
from tui.transport import ReplayTransport

_NOT_CLEARED = "its counters were not cleared yet"
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
        """Return the totals of a subject since it was cleared, of a recording at the frame; or why there are none."""
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
