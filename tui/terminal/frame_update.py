"""Frames of Textual's compositor, sent as the cells that they change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import cast

from rich.console import Console, RenderableType
from textual._compositor import ChopsUpdate, CompositorUpdate, LayoutUpdate

from tui.terminal.cells import Piece, ScreenCells


class LinesUpdate(CompositorUpdate):
    """A frame as pieces of lines, in the order of lines and columns."""

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.pieces = pieces

    def render_segments(self, console: Console) -> str:
        """Return the sequences that draw the pieces, whatever the terminal shows."""
        return "".join(f"\x1b[{each.y + 1};{each.x + 1}H{each.strip.render(console)}" for each in self.pieces)


Update = LayoutUpdate | ChopsUpdate | LinesUpdate


class CellUpdate(CompositorUpdate):
    """Takes a frame from its strips, before they become sequences."""

    def __init__(self, update: Update, cells: ScreenCells) -> None:
        self._update = update
        self._cells = cells

    def render_segments(self, console: Console) -> str:
        """Return the sequences for the terminal; they must be sent, as the model has the frame's cells from here on."""
        return self._cells.draw(pieces_of(self._update), console)


def only_changes(renderable: RenderableType | None, cells: ScreenCells) -> RenderableType | None:
    """Reduce a frame to its changes; anything but a frame of the compositor is drawn as it is."""
    if isinstance(renderable, Update):
        return cast(RenderableType, CellUpdate(renderable, cells))  # Textual draws it without rich.
    if renderable is not None:
        cells.forget()
    return renderable


def pieces_of(update: Update) -> Iterable[Piece]:
    """Return what an update draws, in the order of lines and columns."""
    if isinstance(update, LinesUpdate):
        return update.pieces
    return _all_pieces(update) if isinstance(update, LayoutUpdate) else _changed_pieces(update)


def _all_pieces(update: LayoutUpdate) -> Iterator[Piece]:
    for y, line in enumerate(update.strips, update.region.y):
        x = update.region.x
        for strip in line:
            yield Piece(x, y, strip)
            x += strip.cell_length


def _changed_pieces(update: ChopsUpdate) -> Iterator[Piece]:
    """As ChopsUpdate.render_segments chooses them."""
    for y, start, end in update.spans:
        for strip_end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=False):
            if strip is None or x > end or strip_end <= start:
                continue
            whole = start <= x < end and strip_end <= end
            yield Piece(x, y, strip if whole else strip.crop(0, min(strip_end, end) - x))
