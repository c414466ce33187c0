"""One path: where it leads, in which state it is, and its last minutes."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.latency.subject import LatencySubject
from collectors.latency.subjects import disk_subject
from collectors.model import Frame
from collectors.paths.verdict import judge_paths, odd_words
from tui.history.subjects import row_of
from tui.paths.facts import path_facts
from tui.paths.text import path_told, paths_by_key
from tui.screens.detail import DetailView


class PathView(DetailView):
    """Facts and charts of a path."""

    TABLE = "paths"

    def sentence(self, frame: Frame) -> str:
        """Tell its state and how it compares with its peers."""
        row, judged = row_of(self._key, frame.tables.get("paths")), judge_paths(frame)
        odd = "" if row is None or judged is None else odd_words(frame, judged, row)
        return path_told(frame, self._key, odd)

    def latency_subject(self) -> LatencySubject | None:
        """Follow the path."""
        return None if self.scope.frame is None else disk_subject(self._key, self.scope.frame)

    def facts(self, frame: Frame) -> Iterator[tuple[str, str]]:
        """Yield its way, states and limits."""
        path = paths_by_key(frame.topology.graph).get(self._key)
        return iter(()) if path is None else path_facts(path, frame)
