"""Lines with a cursor, alone or below a title; only those in sight are written and drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.strip import Strip
from textual.style import Style
from textual.widgets.option_list import Option

from tui.widgets.line import TextLine
from tui.widgets.painted import Paged

Item = TypeVar("Item")


def _no_line(_item: object) -> Content:
    """Stand for the lines of a list that has none yet."""
    return Content()


class LineList(Paged, Generic[Item], can_focus=True, inherit_bindings=False):
    """A line for each item; the cursor, which is nowhere at first, stays on its line number.

    Textual's list keeps a widget's worth of state for each line, and draws all in sight again for each that changed.
    """

    DEFAULT_CSS = """
    LineList { overflow-x: hidden; overflow-y: auto; scrollbar-size-vertical: 1; color: $foreground; }
    LineList > .line-list--cursor {
        color: $foreground; background: $block-cursor-blurred-background;
        text-style: $block-cursor-blurred-text-style;
    }
    LineList:focus { background-tint: $foreground 5%; }
    LineList:focus > .line-list--cursor {
        color: $block-cursor-foreground; background: $block-cursor-background; text-style: $block-cursor-text-style;
    }
    LineList > .line-list--hover { background: $block-hover-background; }
    """
    COMPONENT_CLASSES: ClassVar[set[str]] = {"line-list--line", "line-list--cursor", "line-list--hover"}
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "step(-1)", "Up", show=False),
        Binding("down", "step(1)", "Down", show=False),
        Binding("pageup", "page(-1)", "Page up", show=False),
        Binding("pagedown", "page(1)", "Page down", show=False),
        Binding("home", "first", "First", show=False),
        Binding("end", "last", "Last", show=False),
        Binding("enter", "select", "Select", show=False),
    ]

    @dataclass
    class Chosen(Message):
        """A line was chosen with Enter or a click."""

        item: object

    def __init__(self) -> None:
        super().__init__()
        self._items: Sequence[Item] = ()
        self._line_of: Callable[[Item], Content] = _no_line
        self._cursor: int | None = None
        self._hovered: int | None = None
        self._styles_of_lines: dict[str, Style] = {}
        self._written: dict[int, tuple[Content, str, Strip]] = {}
        """What each line in sight was drawn from, and in which style, by its number."""

    @property
    def items(self) -> Sequence[Item]:
        """What the lines are of, from the top down."""
        return self._items

    @property
    def cursor(self) -> int | None:
        """Number of the line under the cursor, None while it is nowhere."""
        return self._cursor

    @property
    def chosen(self) -> Item | None:
        """The item under the cursor, None while it is nowhere."""
        return None if self._cursor is None else self._items[self._cursor]

    def put(self, items: Sequence[Item], line_of: Callable[[Item], Content], *, cursor: int | None = None) -> None:
        """Show these items; `line_of` writes the line of one when it comes into sight.

        `cursor` is the line to move the cursor to; without it the cursor stays on its line number.
        """
        self._items, self._line_of = items, line_of
        wanted = self._cursor if cursor is None else cursor
        self._cursor = min(wanted, len(items) - 1) if items and wanted is not None else None
        self.set_line_count(len(items))
        if cursor is not None:
            self._scroll_to_cursor()
        self.repaint()

    def action_step(self, lines: int) -> None:
        """Move the cursor, round the end of the list; it comes from beyond the end."""
        if self._items:
            before = (-1 if lines > 0 else len(self._items)) if self._cursor is None else self._cursor
            self.move_to((before + lines) % len(self._items))

    def move_to(self, line: int) -> None:
        """Move the cursor to the line, or to the first or last one."""
        if self._items:
            self._cursor = max(0, min(line, len(self._items) - 1))
            self._scroll_to_cursor()
            self.repaint()

    def action_page(self, pages: int) -> None:
        """Move the cursor by pages, to the end at most."""
        self.move_to((self._cursor or 0) + pages * self.area.height)

    def action_first(self) -> None:
        """Move the cursor to the first line."""
        self.move_to(0)

    def action_last(self) -> None:
        """Move the cursor to the last line."""
        self.move_to(len(self._items) - 1)

    def action_select(self) -> None:
        """Choose the line under the cursor."""
        if self._cursor is not None:
            self.post_message(self.Chosen(self.chosen))

    def on_click(self, event: events.Click) -> None:
        """Choose the clicked line."""
        clicked = self._line_at(event)
        if clicked is not None:
            self.move_to(clicked)
            self.action_select()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Show which line a click would choose."""
        self._hover(self._line_at(event))

    def on_leave(self) -> None:
        """Show that a click would choose none."""
        self._hover(None)

    def _hover(self, line: int | None) -> None:
        if line != self._hovered:
            self._hovered = line
            self.repaint()

    def _line_at(self, event: events.MouseEvent) -> int | None:
        offset = event.get_content_offset(self)
        line = None if offset is None else offset.y + self.scroll_offset.y
        return line if line is not None and line < len(self._items) else None

    def on_resize(self) -> None:
        """Keep the cursor in sight."""
        self._scroll_to_cursor()

    def _scroll_to_cursor(self) -> None:
        if self._cursor is not None:
            self.scroll_to_line(self._cursor, self.area.height)

    # ------------------------------------------------------------------ drawing

    def draw_lines(self) -> list[Strip]:
        """Draw the lines in sight; one with the same text as before is not drawn again."""
        top, (width, height) = self.scroll_offset.y, self.area
        before, self._written = self._written, {}
        for line, item in enumerate(self._items[top : top + height], top):
            content, part = self._line_of(item), self._part_of(line)
            was = before.get(line)
            if was is not None and was[1] == part and was[2].cell_length == width and was[0].is_same(content):
                self._written[line] = was
            else:
                self._written[line] = content, part, self._strip(content, part, width)
        strips = [strip for _, _, strip in self._written.values()]
        blank = Strip.blank(width, self._style_of("line").rich_style)
        return strips + [blank] * (height - len(strips))

    def invalidate_style(self) -> None:
        """Clear what was drawn in another style: theme or focus changed."""
        self._styles_of_lines, self._written = {}, {}

    def _part_of(self, line: int) -> str:
        return "cursor" if line == self._cursor else "hover" if line == self._hovered else "line"

    def _strip(self, content: Content, part: str, width: int) -> Strip:
        style = self._style_of(part)
        fitted = content.truncate(width, ellipsis=True)
        return Strip(fitted.render_segments(style)).adjust_cell_length(width, style.rich_style)

    def _style_of(self, part: str) -> Style:
        """Style of a line, looked up once per theme and focus."""
        style = self._styles_of_lines.get(part)
        if style is None:
            style = self._styles_of_lines[part] = self.get_visual_style(f"line-list--{part}")
        return style


class ItemOption(Option, Generic[Item]):
    """A line that carries what it shows: a click that comes when the list has changed selects what was clicked."""

    def __init__(self, prompt: Content, item: Item) -> None:
        super().__init__(prompt)
        self.item = item


class Lister(Vertical):
    """Title or column heading, and a list of lines; Enter on a line posts `LineList.Chosen`."""

    DEFAULT_CSS = """
    Lister TextLine { text-style: bold; }
    Lister LineList { height: 1fr; background: $background; }
    """

    def compose(self) -> ComposeResult:
        """Title and list."""
        yield TextLine(" ")
        yield LineList()

    def put(self, title: Content | str, items: Sequence[Item], line_of: Callable[[Item], Content]) -> None:
        """Show these items by their lines; the cursor stays on its line number."""
        self.query_one(TextLine).put(title)
        self.query_one(LineList).put(items, line_of)
