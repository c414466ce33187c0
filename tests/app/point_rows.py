"""The sweep screen as it is shown, and the points in its grid, from the top."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from textual.pilot import Pilot

from engine.sweep.plan import SweepPlan
from tests.app.sources import ListRecording, ListSource
from tests.app.stage import play, rewind_to, until
from tui.screens.sweep.body import SweepBody
from tui.screens.sweep.curves import CurvesBody
from tui.screens.sweep.point_grid import PointGrid
from tui.screens.sweep.screen import SweepScreen


def point_grid(pilot: Pilot[None]) -> PointGrid[Any]:
    """The grid that is shown."""
    bodies = pilot.app.screen.query("SweepBody").results()
    return next(body.grid for body in bodies if isinstance(body, SweepBody) and body.display)


def points_shown(grid: PointGrid[Any]) -> list[Any]:
    """Its rows in the order that is drawn."""
    order = grid._view.order
    return [grid._points.rows[row] for row in order.window(0, len(order)).tolist()]


def shown_sweep(source: ListSource, *keys: str, position: int = 3) -> Callable[[Pilot[None]], Awaitable[None]]:
    """Show a sweep live, or at a position of a recording, and press keys."""

    async def run(pilot: Pilot[None]) -> None:
        if isinstance(source, ListRecording):
            await pilot.press("9")
            await rewind_to(pilot, source, position)
        else:
            await play(pilot, source, position)
        await pilot.press(*keys)
        await until(pilot, lambda: _answered(pilot))
        screen = pilot.app.screen
        assert isinstance(screen, SweepScreen)
        screen.refresh_view()
        await pilot.pause()

    return run


def _answered(pilot: Pilot[None]) -> bool:
    """Whether all curves were fitted, which a thread does beside the screen."""
    screen = pilot.app.screen
    state = screen.shown.state() if isinstance(screen, SweepScreen) else None
    if state is None or not isinstance(state.plan, SweepPlan):
        return state is not None
    return None not in screen.query_one(CurvesBody).answers(state)
