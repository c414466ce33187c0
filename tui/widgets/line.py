"""A few lines of text that repaint only when they change."""

from __future__ import annotations

from operator import attrgetter

from rich.segment import Segment
from textual.content import Content
from textual.geometry import Region, Size
from textual.strip import Strip
from textual.style import Style
from textual.visual import Visual

from tui.text.glyphs import glyphs_of
from tui.textual_internals.direct_refresh import DirectRefresh

_LAID_OUT = frozenset("\n\t")
"""Characters of text that takes more than one line, or whose width depends on its place."""


class TextLine(DirectRefresh):
    """Text of a fixed height; never parsed as markup, and a change causes no layout."""

    DEFAULT_CSS = """
    TextLine { height: 1; width: 1fr; text-wrap: nowrap; text-overflow: ellipsis; }
    """
    can_focus = False

    def __init__(self, content: Content | str = "", *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id, classes=classes, markup=False)
        self._content = content if isinstance(content, Content) else Content(content)
        self._shown: list[Strip] = []
        """The lines as they are sent, for `_shown_size`."""
        self._shown_size = Size(0, 0)

    @property
    def content(self) -> Content:
        """The current text."""
        return self._content

    def put(self, content: Content | str) -> None:
        """Replace the text."""
        new = content if isinstance(content, Content) else Content(content)
        if not new.is_same(self._content):
            self._content = new
            self.refresh()

    def render(self) -> Content:
        """Draw the text."""
        return self._content

    def render_lines(self, crop: Region) -> list[Strip]:
        """Give lines as they are drawn: for what has no border Textual would look up much that it does not use."""
        styles, size = self.styles, self.region.size
        # Between two layouts a line that was hidden may be asked for in its former size.
        if styles.gutter != styles.padding or not size.region.contains_region(crop):
            self._forget_lines()  # Textual takes what is dirty for drawn.
            return super().render_lines(crop)
        if self.take_changes() or size != self._shown_size:
            self._shown, self._shown_size = self._drawn(size), size
        lines = [self._shown[y] for y in crop.line_range]
        return lines if crop.column_span == (0, size.width) else [line.crop(crop.x, crop.right) for line in lines]

    def _drawn(self, size: Size) -> list[Strip]:
        """Draw all lines, with their padding, through the filters."""
        (top, right, bottom, left), style = self.styles.padding, self.visual_style
        width, height = max(0, size.width - left - right), max(0, size.height - top - bottom)
        texts = self._one_line(width, style) or Visual.to_strips(self, self._content, width, None, style)
        if len(texts) > height > 0:
            texts[height - 1] = self._cut(texts[height - 1], width)
        del texts[height:]
        ground = self.background_colors[1]
        blank = Style(background=ground).rich_style
        before, after = Segment(" " * left, blank), Segment(" " * right, blank)
        lines = [Strip.blank(size.width, blank)] * size.height
        texts += [Strip.blank(width, style.rich_style)] * (height - len(texts))
        for y, text in enumerate(texts, top):
            padded = [before, *text.adjust_cell_length(width, blank), after]
            lines[y] = Strip(filter(attrgetter("text"), padded), size.width)
        for each in self.get_line_filters():
            lines = [line.apply_filter(each, ground) for line in lines]
        return lines

    def _one_line(self, width: int, style: Style) -> list[Strip]:
        """Draw text that has room in one line and no links: Textual takes five times as long for it; else nothing."""
        content, is_left = self._content, self.styles.text_align in ("left", "start")
        if not is_left or not content or content.cell_length > width or not _LAID_OUT.isdisjoint(content.plain):
            return []
        parts = content.render(style, end="", parse_style=self.parsed_style)
        segments = [Segment(text, (style + part).rich_style) for text, part in parts]
        has_links = any(segment.style is not None and segment.style.meta for segment in segments)
        return [] if has_links else [Strip(segments, content.cell_length)]

    def _cut(self, line: Strip, width: int) -> Strip:
        """End the last line that has room with the mark that more of the text follows."""
        text = line.text
        end = line.cell_length - len(text) + len(text.rstrip())
        kept = [*line.crop(0, min(end, max(0, width - 1)))]
        style = kept[-1].style if kept else self.visual_style.rich_style
        # Behind a figure the mark alone would look like more of its digits.
        gap = " " if end + 1 < width else ""
        return Strip([*kept, Segment(gap + glyphs_of(self).ellipsis, style)])

    def notify_style_update(self) -> None:
        """Drop lines drawn with another theme."""
        super().notify_style_update()
        self._forget_lines()

    def _forget_lines(self) -> None:
        """Draw all lines at the next request for one."""
        self._shown, self._shown_size = [], Size(0, 0)
