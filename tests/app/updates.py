"""What a terminal shows that is sent the updates of an app, and what Textual renders for the whole screen."""

from __future__ import annotations

from rich.console import RenderableType
from textual.app import App
from textual.pilot import Pilot
from textual.screen import Screen
from textual.strip import Strip

from tests.app.stage import until
from tui.textual_internals.cells import Piece
from tui.textual_internals.lean_compositor import LinesUpdate
from tui.textual_internals.screens import shown_lines

Cell = tuple[str, object]


class Shown:
    """The cells of a terminal that is sent the updates of an app."""

    def __init__(self) -> None:
        self.cells: dict[tuple[int, int], Cell] = {}
        self.line_updates = 0

    def display(self, _screen: Screen[object], update: RenderableType | None) -> None:
        if isinstance(update, LinesUpdate):
            self.line_updates += 1
            for piece in update.pieces:
                self.draw(piece)

    def draw(self, piece: Piece) -> None:
        for x, cell in enumerate(cells_of(piece.strip), piece.x):
            self.cells[piece.y, x] = cell


def cells_of(strip: Strip) -> list[Cell]:
    return [(char, segment.style) for segment in strip for char in segment.text]


def is_pending(app: App[None]) -> bool:
    """Whether a screen in sight is to be laid out, painted or drawn again: the one on top, or one around a dialog."""
    return any(map(_is_pending, (app.screen, *app._background_screens)))


def _is_pending(screen: Screen[object]) -> bool:
    if screen._dirty_widgets or screen._layout_required or screen._message_queue.qsize() or screen._callbacks:
        return True
    # A screen that is covered keeps its own mark until it is on top again.
    own = () if screen is screen.app.screen else (screen,)
    return any(widget._repaint_required for widget in screen._compositor.visible_widgets if widget not in own)


async def assert_same(pilot: Pilot[None], shown: Shown, key: str) -> None:
    await until(pilot, lambda: not is_pending(pilot.app))
    expected = shown_lines(pilot.app)
    for y, strip in enumerate(expected):
        line = [shown.cells[y, x] for x in range(len(strip.text))]
        assert "".join(char for char, _ in line) == strip.text, f"line {y} after {key}"
        assert line == cells_of(strip), f"styles of line {y} after {key}"
