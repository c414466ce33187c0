"""One HBA port: what it is, how full, and its last minutes."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.latency.subject import LatencySubject
from collectors.latency.subjects import port_subject
from collectors.model import Frame
from tui.paths.facts import port_facts
from tui.paths.text import port_told, ports_by_key
from tui.screens.detail import DetailView


class PortView(DetailView):
    """Facts and charts of an HBA port."""

    TABLE = "hbas"

    def sentence(self, frame: Frame) -> str:
        """Tell how busy it is and how near its limit."""
        port = ports_by_key(frame.topology.graph).get(self._key)
        return "this port is gone" if port is None else port_told(frame, port)

    def facts(self, frame: Frame) -> Iterator[tuple[str, str]]:
        """Yield its address, members and paths."""
        port = ports_by_key(frame.topology.graph).get(self._key)
        return iter(()) if port is None else port_facts(port, frame)

    def latency_subject(self) -> LatencySubject | None:
        """Follow all paths of the port."""
        return None if self.scope.frame is None else port_subject(self._key, self.scope.frame.topology)
