"""Updates that render only what shows of the widgets that changed, and frames sent as the cells that they change."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Any, cast

from rich.console import Console, RenderableType
from textual._compositor import Compositor, CompositorUpdate, ReflowResult
from textual._context import visible_screen_stack
from textual.geometry import Region, Size
from textual.screen import Screen
from textual.widget import Widget

from tui.textual_internals.cells import Piece, ScreenCells
from tui.textual_internals.frame_sequences import runs_of

Places = Mapping[Widget, tuple[Region, Region]]
"""Region and clip of each visible widget, from front to back."""
Run = tuple[int, int]
"""Columns, the end exclusive."""


def uncovered_parts(places: Places, screen: Region) -> dict[Widget, list[Region]]:
    """Return what shows of each widget as rectangles that do not overlap; none of one that is covered.

    Lines between which no widget begins or ends are looked at together: most layouts have some twenty such bands.
    """
    shown = {widget: region.intersection(clip).intersection(screen) for widget, (region, clip) in places.items()}
    edges = sorted({y for region in shown.values() for y in (region.y, region.bottom)})
    free: list[list[Run]] = [[(screen.x, screen.right)] for _ in edges]
    parts: dict[Widget, list[Region]] = {widget: [] for widget in places}
    for widget, region in shown.items():
        if not region:
            continue
        for band in range(bisect_left(edges, region.y), bisect_left(edges, region.bottom)):
            taken, free[band] = _split(free[band], region.x, region.right)
            _add(parts[widget], taken, edges[band], edges[band + 1])
    return parts


def _split(runs: Sequence[Run], start: int, end: int) -> tuple[list[Run], list[Run]]:
    """Split runs into what is from `start` to `end`, and the rest."""
    taken: list[Run] = []
    left: list[Run] = []
    for first, last in runs:
        if last <= start or first >= end:
            left.append((first, last))
            continue
        taken.append((max(first, start), min(last, end)))
        if first < start:
            left.append((first, start))
        if last > end:
            left.append((end, last))
    return taken, left


def _add(parts: list[Region], runs: Sequence[Run], top: int, bottom: int) -> None:
    """Add the runs of a band; one that continues the last rectangle makes it higher."""
    for first, last in runs:
        continues = parts and (parts[-1].x, parts[-1].right, parts[-1].bottom) == (first, last, top)
        start = parts.pop().y if continues else top
        parts.append(Region.from_corners(first, start, last, bottom))


_TOP_LEFT = attrgetter("y", "x")


class LeanCompositor(Compositor):
    """Renders what shows of a changed region.

    Textual renders every line of every widget within the rectangle around all changes, which mostly is the whole
    screen, covered ones included, cuts each of them where any widget begins, and drops what did not change or is
    covered: most of the CPU time of a key. Here what shows of a widget is computed once per layout, and its lines go
    to the terminal as they are unless something covers a part of them.
    """

    _own_changes: dict[Widget, list[Region]]
    """Regions that changed since the last update and layout, by their widget."""
    _laid_out: tuple[Region, ...] = ()
    """Regions that changed with the layout since the last update, or before it: all that shows there is new."""
    _places: Places | None = None
    """The layout to which the next belongs."""
    _uncovered: dict[Widget, list[Region]]

    def __init__(self) -> None:
        super().__init__()
        self._own_changes = {}
        self._uncovered = {}

    def reflow(self, parent: Widget, size: Size) -> ReflowResult:
        """Arrange the widgets."""
        result = super().reflow(parent, size)
        self._renew()
        return result

    def reflow_visible(self, parent: Widget, size: Size) -> set[Widget]:
        """Arrange the widgets after something was scrolled."""
        exposed = super().reflow_visible(parent, size)
        self._renew()
        return exposed

    def _renew(self) -> None:
        """Take what will be painted for new to all widgets: the layout it was noted in is gone."""
        self._own_changes, self._laid_out = {}, tuple(self._dirty_regions)

    def update_widgets(self, widgets: set[Widget]) -> None:
        """Note the regions of widgets to be painted again, by widget."""
        if not self._dirty_regions:
            self._renew()
        for widget in self.visible_widgets.keys() & widgets:
            region, clip = self.visible_widgets[widget]
            found = (clip.intersection(part.translate(region.offset)) for part in widget._repaint_regions)
            self._own_changes.setdefault(widget, []).extend(part for part in found if part)
        super().update_widgets(widgets)

    def render_update(
        self, full: bool = False, screen_stack: list[Screen[Any]] | None = None, simplify: bool = False
    ) -> RenderableType | None:
        """Render what changed; `full` is for pictures of the screen, which are made as Textual does."""
        if full:
            return super().render_update(full, screen_stack, simplify)
        visible_screen_stack.set(screen_stack or [])
        changes = self._changes()
        self._dirty_regions.clear()
        self._renew()
        return cast(RenderableType, self._rendered(changes)) if changes else None  # Textual draws it without rich.

    def _changes(self) -> Mapping[Widget, list[Region]]:
        """Find what to render of each widget: what it changed itself, and all there is where the layout changed."""
        screen = self.size.region
        if screen in self._dirty_regions:
            return {widget: [screen] for widget in self.visible_widgets}
        if not self._laid_out:
            return self._own_changes
        return {widget: [*self._own_changes.get(widget, ()), *self._laid_out] for widget in self.visible_widgets}

    def _rendered(self, changes: Mapping[Widget, list[Region]]) -> LinesUpdate:
        """Lines of widgets, as far as they changed and show."""
        places = self.visible_widgets
        if self._places is not places:
            self._places, self._uncovered = places, uncovered_parts(places, self.size.region)
        # All are looked up before one is rendered: a widget that asks for its place then may have the screen arranged
        # anew, without those that have left it since.
        shown = [(widget, self._uncovered.get(widget, ()), parts) for widget, parts in changes.items()]
        pieces = [
            piece
            for widget, uncovered, parts in shown
            if uncovered
            for piece in _lines(widget, places[widget], uncovered, parts)
        ]
        pieces.sort(key=_TOP_LEFT)
        return LinesUpdate(pieces)


def _lines(
    widget: Widget, place: tuple[Region, Region], uncovered: Iterable[Region], changed: Iterable[Region]
) -> Iterator[Piece]:
    """Yield the lines of a widget that changed, as far as they show."""
    region, clip = place
    left = max(region.x, clip.x)
    width = min(region.right, clip.right) - left
    showing: dict[int, list[Region]] = {}
    for part in uncovered:
        for y in {y for each in changed for y in each.intersection(part).line_range}:
            showing.setdefault(y, []).append(part)
    for top, bottom in runs_of(sorted(showing)):
        lines = Region(left - region.x, top - region.y, width, bottom - top)
        for y, strip in enumerate(widget.render_lines(lines), top):
            for part in showing[y]:
                is_whole = part.x == left and part.width == strip.cell_length
                yield Piece(part.x, y, strip if is_whole else strip.crop(part.x - left, part.right - left))


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
