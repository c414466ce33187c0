"""The points in a grid of the sweep screen, from the top."""

from __future__ import annotations

from typing import Any

from textual.pilot import Pilot

from tui.screens.sweep.body import SweepBody
from tui.screens.sweep.point_grid import PointGrid


def point_grid(pilot: Pilot[None]) -> PointGrid[Any]:
    """The grid that is shown."""
    bodies = pilot.app.screen.query("SweepBody").results()
    return next(body.grid for body in bodies if isinstance(body, SweepBody) and body.display)


def points_shown(grid: PointGrid[Any]) -> list[Any]:
    """Its rows in the order that is drawn."""
    order = grid._view.order
    return [grid._points.rows[row] for row in order.window(0, len(order)).tolist()]
