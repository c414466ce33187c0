"""What the app shares with its screens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct, field

from collectors.derive.roles import is_base
from collectors.latency.subjects import TRACE, WHOLE_LOAD, LatencySubject, disk_subject, present_keys
from collectors.model import Frame
from tui.alert_state import AlertState
from tui.app_input import AppInput
from tui.history.charts import EventHistory, History
from tui.history.subjects import Trace
from tui.kept import AxisChoice, Choices, Density
from tui.screen_registry import HOSTS, ScreenEntry
from tui.text.format import SECOND_NS
from tui.transport import Transport

if TYPE_CHECKING:
    from collectors.latency.recording_peaks import RecordingPeaks
    from collectors.latency.summary import Peak
    from engine.running.status import LoadStatus
    from engine.tune.held import HeldChanges

MOST_PEAKS = 40
"""Most peaks that are listed, drawn on the timeline, and stepped through."""
INTERVALS_PER_PEAK = 10
"""Least intervals for each peak that is drawn on the timeline and stepped through."""


class LatencyJump(Struct, frozen=True):
    """What the latency screen is to show: subject and time; None leaves each unchanged."""

    subject: LatencySubject | None
    moment_ns: int | None


def traced_subject(trace: Trace, frame: Frame) -> LatencySubject | None:
    """Show the latencies of what a chart shows."""
    if trace.table == "load_total":
        return WHOLE_LOAD
    if trace.table == "disks":
        return disk_subject(trace.key, frame)
    base = (key for key in present_keys(frame) if is_base(key, frame.topology))
    return LatencySubject("all disks", TRACE, frozenset(base))


class AppState(AppInput, kw_only=True, eq=False):
    """State shared by all screens, from what they were started with on.

    The app alone sets `frame`, the feed alone fills `history` and `events`.
    """

    transport: Transport
    history: History
    events: EventHistory
    interval_s: float
    interval_changed: bool = False
    """Whether the operator changed it."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """The operator's own keys by action id."""
    wrong_settings: tuple[str, ...] = ()
    """What is wrong in the files of settings, columns, tables and themes as they are now; help lists it."""
    span_ns: int = 300 * 1_000_000_000
    """Length of the chart history."""
    latency_axis: AxisChoice = AxisChoice.AUTO
    """Axis of latency charts; a logarithmic one shows a mean below a peak a hundred times as high."""
    alerts: AlertState | None = None
    """What is raised."""
    frame: Frame | None = None
    """The frame on the screen."""
    latest: Frame | None = None
    """The newest frame, shown or not."""
    brief: str = ""
    """What the last key did, shown for a moment."""
    recording_peaks: RecordingPeaks | None = None
    """The largest peaks of the whole recording; None live, and until the first sample is drawn."""
    jump: LatencyJump | None = None
    """Request to the latency screen, which clears it."""
    density: Density = Density.NORMAL
    """How much the screens show."""
    choices: Choices = field(default_factory=Choices)
    """What the operator chose, kept for the next start."""
    tuning: HeldChanges | None = None
    """Changes of tunables in force; None until they are first asked for."""
    ended: str | None = None
    """Why the source ended, empty at the end of a recording; None while it runs."""
    _kept_peaks: tuple[tuple[int, int], list[int]] = ((0, 0), [])
    """Peaks of a live host, and their range, which moves once a sample, while the display moves with every key."""

    def drives(self, screen: ScreenEntry | None) -> bool:
        """Whether the keys of a load drive one on a screen: that of the fleet on its hosts, else that of this host."""
        return (self.fleet_load if screen is HOSTS else self.controller) is not None

    @property
    def loads(self) -> tuple[LoadStatus, ...]:
        """Status of the loads that are driven here."""
        return tuple(load.status for load in (self.controller, self.fleet_load) if load is not None)

    @property
    def is_rewound(self) -> bool:
        """Whether the display of a live host is paused: figures of the present are not shown then."""
        return self.transport.paused and not self.transport.seekable

    def peaks_ns(self) -> list[int]:
        """Wall times of the largest latency peaks, of the whole recording as far as it was read, or of what is kept."""
        start_ns, end_ns = self.transport.start_ns, self.transport.end_ns
        if self.recording_peaks is not None:
            return self._foremost(self.recording_peaks.peaks(), end_ns - start_ns)
        if self.transport.seekable:
            return []
        if self._kept_peaks[0] != (start_ns, end_ns):
            kept = self.history.latencies.peaks(start_ns - 1, end_ns, MOST_PEAKS)
            self._kept_peaks = (start_ns, end_ns), self._foremost(kept, end_ns - start_ns)
        return self._kept_peaks[1]

    def _foremost(self, peaks: Sequence[Peak], length_ns: int) -> list[int]:
        """Take the times of the first peaks; few of many, as every busy interval has one."""
        most = max(1, round(length_ns / SECOND_NS / self.interval_s / INTERVALS_PER_PEAK))
        return sorted(list(dict.fromkeys(peak.time_ns for peak in peaks))[:most])

    @property
    def latest_ns(self) -> int:
        """Wall time of the newest frame; 0 before the first."""
        return 0 if self.latest is None else self.latest.time_ns
