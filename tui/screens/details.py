"""Detail pages by frame table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from collectors.hotness import verdict
from collectors.latency.subjects import LatencySubject, disk_subject, port_subject
from collectors.model import Frame
from collectors.tables.block.path_verdict import judge_paths, odd_words
from tui.app_state import AppState
from tui.history.subjects import row_of
from tui.paths.device_facts import facts_of
from tui.paths.facts import path_facts, port_facts
from tui.paths.text import path_summary, paths_by_key, port_summary, ports_by_key
from tui.screens.detail import DetailView


class PortView(DetailView):
    """Attributes and charts of an HBA port."""

    TABLE = "hbas"

    def sentence(self, frame: Frame) -> str:
        """Describe its busy time and the share of its limit."""
        port = ports_by_key(frame.topology.graph).get(self._key)
        return "this port is gone" if port is None else port_summary(frame, port)

    def facts(self, frame: Frame) -> Iterator[tuple[str, str]]:
        """Yield its address, members and paths."""
        port = ports_by_key(frame.topology.graph).get(self._key)
        return iter(()) if port is None else port_facts(port, frame)

    def latency_subject(self) -> LatencySubject | None:
        """Return all paths of the port."""
        return None if self.app_state.frame is None else port_subject(self._key, self.app_state.frame.topology)


class PathView(DetailView):
    """Attributes and charts of a path."""

    TABLE = "paths"

    def sentence(self, frame: Frame) -> str:
        """Describe its state and how it compares with its peers."""
        row, judged = row_of(self._key, frame.tables.get("paths")), judge_paths(frame)
        odd = "" if row is None or judged is None else odd_words(frame, judged, row)
        return path_summary(frame, self._key, odd)

    def latency_subject(self) -> LatencySubject | None:
        """Return the path."""
        return None if self.app_state.frame is None else disk_subject(self._key, self.app_state.frame)

    def facts(self, frame: Frame) -> Iterator[tuple[str, str]]:
        """Yield its route, states and limits."""
        path = paths_by_key(frame.topology.graph).get(self._key)
        return iter(()) if path is None else path_facts(path, frame)


class DiskView(DetailView):
    """Attributes and charts of a disk or LUN."""

    TABLE = "disks"

    def sentence(self, frame: Frame) -> str:
        """Give the reason for its heat."""
        row = row_of(self._key, frame.tables.get("disks"))
        return "this disk is gone" if row is None else verdict(frame, row)

    def facts(self, frame: Frame) -> Iterator[tuple[str, str]]:
        """Yield the attributes of the device."""
        device = frame.topology.devices.get(self._key)
        return iter(()) if device is None else facts_of(device)

    def latency_subject(self) -> LatencySubject | None:
        """Return the disk."""
        return None if self.app_state.frame is None else disk_subject(self._key, self.app_state.frame)


_VIEWS: Mapping[str, type[DetailView]] = {view.TABLE: view for view in (DiskView, PathView, PortView)}


def detail_view(app_state: AppState, table: str, key: str) -> DetailView:
    """Make the page of a disk, path or port."""
    return _VIEWS[table](app_state, key)
