"""One disk: what it is, why it is hot, and its last minutes."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.heat import verdict
from collectors.latency.subject import LatencySubject
from collectors.latency.subjects import disk_subject
from collectors.model import Frame
from tui.history.subjects import row_of
from tui.paths.device_facts import facts_of
from tui.screens.detail import DetailView


class DiskView(DetailView):
    """Facts and charts of a disk or LUN."""

    TABLE = "disks"

    def sentence(self, frame: Frame) -> str:
        """Tell why it is as hot as it is."""
        row = row_of(self._key, frame.tables.get("disks"))
        return "this disk is gone" if row is None else verdict(frame, row)

    def facts(self, frame: Frame) -> Iterator[tuple[str, str]]:
        """Yield what the device says of itself."""
        device = frame.topology.devices.get(self._key)
        return iter(()) if device is None else facts_of(device)

    def latency_subject(self) -> LatencySubject | None:
        """Follow the disk."""
        return None if self.scope.frame is None else disk_subject(self._key, self.scope.frame)
