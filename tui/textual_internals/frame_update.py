"""Frames of Textual's compositor, sent as the cells that they change."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from rich.console import Console, RenderableType
from textual._compositor import CompositorUpdate

from tui.textual_internals.cells import Piece, ScreenCells


class LinesUpdate(CompositorUpdate):
    """A frame as pieces of lines, in the order of lines and columns."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.pieces = pieces

    def render_segments(self, console: Console) -> str:
        """Return the sequences that draw the pieces, whatever the terminal shows."""
        return "".join(f"\x1b[{each.y + 1};{each.x + 1}H{each.strip.render(console)}" for each in self.pieces)


class CellUpdate(CompositorUpdate):
    """Takes a frame from its strips, before they become sequences."""

    def __init__(self, update: LinesUpdate, cells: ScreenCells) -> None:
        self._update = update
        self._cells = cells

    def render_segments(self, console: Console) -> str:
        """Return the sequences for the terminal; they must be sent, as the model has the frame's cells from here on."""
        return self._cells.draw(self._update.pieces, console)


def only_changes(renderable: RenderableType | None, cells: ScreenCells) -> RenderableType | None:
    """Reduce a frame to its changes; anything but a frame of the compositor is drawn as it is."""
    if isinstance(renderable, LinesUpdate):
        return cast(RenderableType, CellUpdate(renderable, cells))  # Textual draws it without rich.
    if renderable is not None:
        cells.forget()
    return renderable
