"""Which page shows a row of which frame table."""

from __future__ import annotations

from collections.abc import Mapping

from tui.scope import Scope
from tui.screens.detail import DetailView
from tui.screens.disk import DiskView
from tui.screens.path import PathView
from tui.screens.port import PortView

_VIEWS: Mapping[str, type[DetailView]] = {view.TABLE: view for view in (DiskView, PathView, PortView)}


def detail_view(scope: Scope, table: str, key: str) -> DetailView:
    """Make the page of a disk, path or port."""
    return _VIEWS[table](scope, key)
