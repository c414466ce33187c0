"""The transport bar: whether the picture is live, held or played, and the timeline of a recording."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content

from collectors.field import Unit
from collectors.session.moments import clock_text
from engine.text import safe_text
from tui.scope import Scope
from tui.text.clock import SECOND_NS, span_text
from tui.text.format import format_quantity
from tui.transport import LiveTransport, ReplayTransport
from tui.widgets.line import TextLine
from tui.widgets.timeline import Timeline


class TransportBar(Horizontal):
    """One line: the state in words and a sign, and where there is a recording, its timeline."""

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

    def show(self, scope: Scope) -> None:
        """Show where in time the screen is."""
        transport = scope.transport
        if isinstance(transport, ReplayTransport):
            self.set_class(True, "-seekable")
            self.query_one(TextLine).put(_replay_state(transport, scope))
            self.query_one(Timeline).show(
                transport.start_ns, transport.end_ns, transport.position_ns, scope.events.all()
            )
        else:
            self.query_one(TextLine).put(_live_state(transport, scope))


def _live_state(transport: LiveTransport, scope: Scope) -> Content:
    recording = _recording_text(scope)
    if scope.ended is not None:
        return Content.assemble((" ■ STOPPED ", "bold $error"), safe_text(scope.ended), recording)
    if transport.held is None:
        return Content.assemble((" ▶ LIVE", "bold $success"), recording)
    held_s = (scope.latest_ns - transport.held.time_ns) / SECOND_NS
    held = f" at {clock_text(transport.held.time_ns)}, {span_text(held_s)} behind"
    return Content.assemble((" ‖ PAUSED", "bold reverse $warning"), held, _recording_text(scope, paused=True))


def _recording_text(scope: Scope, *, paused: bool = False) -> Content:
    recording = scope.recording
    if recording is None:
        return Content.assemble(("   not recording" if paused else "   not recorded", "dim"))
    if recording.trouble:
        return Content.assemble((f"   recording stopped: {safe_text(recording.trouble)}", "bold $error"))
    size = format_quantity(float(recording.size_bytes), Unit.BYTES, 5)
    return Content.assemble(f"   {'still ' if paused else ''}recording to {safe_text(recording.path)}, {size}")


def _replay_state(transport: ReplayTransport, scope: Scope) -> Content:
    speed = f"{transport.speed:g}x"
    where = f" {clock_text(transport.position_ns)} / {clock_text(transport.end_ns)} {speed}"
    if scope.ended:
        return Content.assemble((" ■ STOPPED ", "bold $error"), safe_text(scope.ended))
    if transport.position_ns >= transport.end_ns:
        return Content.assemble((" ■ END   ", "bold"), where)
    if transport.paused:
        return Content.assemble((" ‖ PAUSED", "bold reverse $warning"), where)
    return Content.assemble((" ▶ REPLAY", "bold $success"), where)
