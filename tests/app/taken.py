"""Pictures of one app at several sizes: a resize leads to what a start at that size shows."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from textual.app import App
from textual.pilot import Pilot

SnapCompare = Callable[..., bool]


class Taken(App[str]):
    """A picture of an app that runs, where `snap_compare` wants to run one."""

    def __init__(self, shown: App[None]) -> None:
        super().__init__()
        self._picture = shown.export_screenshot(title=shown.title, simplify=True)

    def run(self, **_options: object) -> str:
        return self._picture


async def resized(pilot: Pilot[None], size: tuple[int, int]) -> None:
    """Change the size unless it is that, and wait until the screen is at rest."""
    if pilot.app.size != size:
        await pilot.resize_terminal(*size)
    await pilot.pause()
    await pilot.wait_for_scheduled_animations()
    await pilot.pause()


async def assert_pictured(pilot: Pilot[None], sizes: Sequence[tuple[int, int]], snap_compare: SnapCompare) -> None:
    """Compare a picture at each size with the one that was accepted; they are numbered in this order."""
    for size in sizes:
        await resized(pilot, size)
        assert snap_compare(Taken(pilot.app)), size


async def assert_pictures(
    app: App[None],
    sizes: Sequence[tuple[int, int]],
    run: Callable[[Pilot[None]], Awaitable[None]],
    snap_compare: SnapCompare,
) -> None:
    """Run the app at the first size, do what leads to the picture, and compare it at all sizes."""
    async with app.run_test(size=sizes[0]) as pilot:
        await run(pilot)
        await assert_pictured(pilot, sizes, snap_compare)
