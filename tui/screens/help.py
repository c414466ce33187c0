"""Help: generated from the registries of actions and fields, on a page of lines with hanging indent."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.strip import Strip
from textual.visual import Visual
from textual.widget import Widget

from collectors.exact.losses import loss_lines
from collectors.field import Field
from collectors.model import Tier
from collectors.registry import SUBJECTS
from engine.text import safe_text
from tui.action import Action
from tui.keys import ANYWHERE_ACTIONS
from tui.screen_registry import SCREENS
from tui.theme.laid_out import Modal
from tui.widgets.grid.table import Grid

LEAST_TEXT = 12
"""Text width below which an indent would waste the line."""


@dataclass(frozen=True, slots=True)
class Hanging:
    """One line; wrapped text continues `indent` cells from the left."""

    content: Content
    indent: int = 0


def wrapped(line: Hanging, width: int) -> Iterator[Content]:
    """Wrap a line to a width; only words longer than a line are cut."""
    plain, indent = line.content.plain, line.indent if width - line.indent >= LEAST_TEXT else 0
    if len(plain) <= width or not plain[indent:].strip():
        yield line.content
        return
    position, head = indent, line.content[:indent]
    for piece in textwrap.wrap(plain[indent:], max(width - indent, 1), replace_whitespace=False):
        start = plain.index(piece, position)
        position = start + len(piece)
        yield head + line.content[start:position]
        head = Content(" " * indent)


class HangingPage(Widget):
    """Lines; the widget is as high as they are, and only those in view are drawn."""

    DEFAULT_CSS = """
    HangingPage { height: auto; width: 1fr; }
    """

    def __init__(self, lines: Sequence[Hanging]) -> None:
        super().__init__(markup=False)
        self._lines = lines
        self._width = 0
        self._wrapped: list[Content] = []

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:  # noqa: ARG002 - Textual's signature
        """Count the lines at a width."""
        return len(self.lines_at(width))

    def render_line(self, y: int) -> Strip:
        """Draw one line at the current width."""
        lines = self.lines_at(self.size.width)
        if y >= len(lines):
            return Strip.blank(self.size.width, self.rich_style)
        (strip,) = Visual.to_strips(self, lines[y], self.size.width, 1, self.visual_style)
        return strip

    def lines_at(self, width: int) -> list[Content]:
        """Return all lines, wrapped to a width."""
        if width != self._width:
            self._width = width
            self._wrapped = [part for line in self._lines for part in wrapped(line, max(width, 1))]
        return self._wrapped


TIER_TEXTS = (
    (Tier.EXACT, "measured for every I/O, by the kernel's tracepoints or the engine's own clock"),
    (Tier.SAMPLED, "estimated from many samples of the I/Os in flight; accurate to a few percent when busy"),
    (Tier.KERNEL, "from the kernel's counters alone: means over the interval, %busy over-reports on parallel devices"),
)

_TOP_LINE = (
    ("cost", "CPU time of sampling, in % of one CPU; without drawing and the load"),
    ("late", "delay of the last sample"),
)


class HelpScreen(Modal[None]):
    """All keys and all figures; `?` or Esc closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,f1", "dismiss(None)", "Close", show=False)]
    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen VerticalScroll { width: 100%; max-width: 110; height: 100%; background: $surface; padding: 0 1; }
    """

    def __init__(self, keys_text: Callable[[Action], str], notices: Sequence[str], losses: Mapping[str, int]) -> None:
        super().__init__()
        self._notices = notices
        self._losses = losses
        self._keys_text = keys_text

    def compose(self) -> ComposeResult:
        """One long page."""
        with VerticalScroll():
            yield HangingPage(list(help_lines(self._keys_text, self._table_keys(), self._notices, self._losses)))

    def _table_keys(self) -> Iterator[tuple[str, str]]:
        """Keys of tables as displayed, and their actions."""
        for binding in Grid.BINDINGS:
            if isinstance(binding, Binding):
                keys = (self.app.get_key_display(binding.with_key(key)) for key in binding.key.split(","))
                yield " ".join(keys), binding.description


def help_lines(
    keys_text: Callable[[Action], str],
    table_keys: Iterable[tuple[str, str]],
    notices: Sequence[str],
    losses: Mapping[str, int],
) -> Iterator[Hanging]:
    """Write the page: notices, keys by screen, tiers, the top line, I/Os missed by exact time, fields by table."""
    title = Content.assemble(("lunscope", "bold"), "  an oscilloscope for storage       Esc closes, arrows scroll")
    yield Hanging(title)
    if notices:
        yield from _heading("Notices on this host")
        yield from (_entry("  ! ", "bold $warning", safe_text(notice)) for notice in notices)
    for name, actions in (("everywhere", ANYWHERE_ACTIONS), *((f"of {entry.id}", entry.actions) for entry in SCREENS)):
        if actions:
            yield from _heading(f"Keys {name}")
            yield from (_key_line(keys_text(action), action.title + _limits(action)) for action in actions)
    yield from _heading("Keys of tables")
    yield from (_key_line(*entry) for entry in table_keys)
    yield from _heading("Tiers: how a figure was obtained")
    yield from (_entry(f"  {tier.name.lower():<18}", "bold", text) for tier, text in TIER_TEXTS)
    yield from _heading("The line at the top")
    yield from (_entry(f"  {word:<18}", "bold", text) for word, text in _TOP_LINE)
    if losses:
        yield from _heading("I/Os missed by exact time since it began")
        yield from (Hanging(Content(line)) for line in loss_lines(losses))
    for subject in SUBJECTS:
        yield from _heading(f"{subject.one[0].upper()}{subject.one[1:]} fields")
        yield from map(_field_line, subject.fields)


def _heading(text: str) -> tuple[Hanging, Hanging]:
    return Hanging(Content("")), Hanging(Content.assemble((text, "bold underline")))


def _entry(head: str, style: str, *text: str | tuple[str, str]) -> Hanging:
    return Hanging(Content.assemble((head, style), *text), len(head))


def _key_line(keys: str, text: str) -> Hanging:
    return _entry(f"  {keys:<18}", "bold $accent", text)


def _limits(action: Action) -> str:
    return "  (recordings only)" if action.replay else ""


def _field_line(field: Field) -> Hanging:
    unit = f"[{field.unit}] " if field.unit else ""
    tier = f" ({field.tier.name.lower()})" if field.tier is not Tier.KERNEL else ""
    return _entry(f"  {field.title:<12}", "bold", (unit, "$accent"), field.help, (tier, "dim"))
