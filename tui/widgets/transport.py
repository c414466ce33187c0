"""The transport bar: live, paused or replay, and the timeline of a recording."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content

from collectors.field import Unit
from collectors.session.time_format import clock_text
from engine.text import safe_text
from tui.app_state import AppState
from tui.text.format import SECOND_NS, format_quantity, span_text
from tui.transport import LiveTransport, ReplayTransport
from tui.widgets.line import TextLine
from tui.widgets.timeline import Timeline


class TransportBar(Horizontal):
    """One line: the state as text and symbol, and in a replay the timeline."""

    DEFAULT_CSS = """
    TransportBar { height: 1; background: $panel; }
    TransportBar Timeline { width: 1fr; display: none; }
    TransportBar.-seekable Timeline { display: block; }
    TransportBar.-seekable TextLine { width: 38; }
    """

    def compose(self) -> ComposeResult:
        """State and timeline."""
        yield TextLine(" …", id="state")
        yield Timeline()

    def show(self, app_state: AppState, *, follows_time: bool = True) -> None:
        """Show the current position in time, and whether the screen above shows that time."""
        transport = app_state.transport
        self.set_class(transport.seekable, "-seekable")
        self.set_class(app_state.is_rewound, "-rewound")
        if isinstance(transport, ReplayTransport):
            self.query_one(TextLine).put(_replay_state(transport, app_state))
        else:
            self.query_one(TextLine).put(_live_state(transport, app_state, follows_time=follows_time))
        timeline = self.query_one(Timeline)
        if timeline.display:
            events, peaks_ns = app_state.events.all(), app_state.peaks_ns()
            timeline.show(transport.start_ns, transport.end_ns, transport.position_ns, events, peaks_ns)


def _live_state(transport: LiveTransport, app_state: AppState, *, follows_time: bool) -> Content:
    recording = _recording_text(app_state)
    if app_state.ended is not None:
        return Content.assemble((" ■ STOPPED ", "bold $error"), safe_text(app_state.ended), recording)
    if transport.held is None:
        return Content.assemble((" ▶ LIVE", "bold $success"), _brief(app_state), recording)
    held_s = (app_state.latest_ns - transport.held.time_ns) / SECOND_NS
    kept_s = (app_state.latest_ns - min(transport.start_ns, transport.position_ns)) / SECOND_NS
    held = f" at {clock_text(transport.held.time_ns)}, {span_text(held_s)} back, {span_text(kept_s)} kept"
    here = "" if follows_time else "   (not this screen)"
    return Content.assemble(
        (" ‖ PAUSED", "bold reverse $warning"),
        _brief(app_state),
        held,
        (here, "$warning"),
        _recording_text(app_state, paused=True),
    )


def _brief(app_state: AppState) -> str:
    return f"   {app_state.brief}" if app_state.brief else ""


def _recording_text(app_state: AppState, *, paused: bool = False) -> Content:
    recording = app_state.recording
    if recording is None:
        return Content.assemble(("   not recording" if paused else "   not recorded", "dim"))
    if recording.trouble:
        return Content.assemble((f"   recording stopped: {safe_text(recording.trouble)}", "bold $error"))
    size = format_quantity(float(recording.size_bytes), Unit.BYTES, 5)
    return Content.assemble(f"   {'still ' if paused else ''}recording to {safe_text(recording.path)}, {size}")


def _replay_state(transport: ReplayTransport, app_state: AppState) -> Content:
    speed = f"{transport.speed:g}x"
    where = f" {clock_text(transport.position_ns)} / {clock_text(transport.end_ns)} {speed}"
    if app_state.ended:
        return Content.assemble((" ■ STOPPED ", "bold $error"), safe_text(app_state.ended))
    if app_state.brief:  # There is no room for both.
        where = f" {app_state.brief}"
    if transport.position_ns >= transport.end_ns:
        return Content.assemble((" ■ END   ", "bold"), where)
    if transport.paused:
        return Content.assemble((" ‖ PAUSED", "bold reverse $warning"), where)
    return Content.assemble((" ▶ REPLAY", "bold $success"), where)
