"""Help: sections of keys and figures, those of the current screen first, with a search."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.events import Key
from textual.widgets import Input

from tui.action import Action
from tui.screen_registry import ScreenEntry
from tui.screens.help.hanging import HangingPage, next_match
from tui.screens.help.sections import Hanging, HelpFacts, heading, help_sections
from tui.textual_internals.laid_out import Modal
from tui.widgets.grid.table import Grid
from tui.widgets.line import TextLine

LINES_ABOVE = 2
"""Lines shown above a match."""
_KEYS = (("/", "search"), ("n N", "next, before"), ("Tab", "section"), ("Esc", "close"))


class HelpScreen(Modal[None]):
    """All keys and all figures; `?` or Esc closes it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", "Close", show=False),
        Binding("q,question_mark,f1", "dismiss(None)", "Close", show=False),
        Binding("slash", "search", "Search", show=False),
        Binding("n", "match(1)", "Next match", show=False),
        Binding("N", "match(-1)", "Match before", show=False),
        Binding("tab", "section(1)", "Next section", show=False, priority=True),
        Binding("shift+tab", "section(-1)", "Section before", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    HelpScreen { align: center middle; }
    HelpScreen #help-box { width: 100%; max-width: 110; height: 1fr; background: $surface; padding: 0 1; }
    HelpScreen TextLine, HelpScreen Input { width: 100%; max-width: 110; background: $panel; }
    HelpScreen Input { display: none; }
    HelpScreen.-searching Input { display: block; }
    """

    def __init__(
        self,
        keys_text: Callable[[Action], str],
        notices: Sequence[str],
        losses: Mapping[str, int],
        screen: ScreenEntry | None = None,
        closing: Iterable[str] = (),
    ) -> None:
        """Take the keys in force, what the host says, the current screen, and the keys that close help as well."""
        super().__init__()
        self._close_keys = frozenset(closing)
        self._keys_text, self._notices, self._losses, self._of_screen = keys_text, notices, losses, screen
        self._starts: list[int] = []
        self._found: list[int] = []
        self._present = -1

    def compose(self) -> ComposeResult:
        """Yield the page, the line to search with, and the keys of help."""
        with VerticalScroll(id="help-box"):
            yield HangingPage(self._page())
        yield Input(placeholder="words; Enter keeps the search, Esc drops it", compact=True)
        yield TextLine(_status())

    def on_mount(self) -> None:
        """Let the arrows scroll."""
        self.query_one(VerticalScroll).focus()

    def on_key(self, event: Key) -> None:
        """Close with the operator's own key of help; one typed into the search never gets here."""
        if event.key in self._close_keys and not self.has_class("-searching"):
            event.stop()
            self.dismiss(None)

    def _page(self) -> list[Hanging]:
        facts = HelpFacts(self._of_screen, self._keys_text, self._table_keys(), self._notices, self._losses)
        lines: list[Hanging] = []
        for section in help_sections(facts):
            self._starts.append(len(lines))
            blank, title = heading(section.title)
            lines += [blank, title, *section.lines] if lines else [title, *section.lines]
        return lines

    def _table_keys(self) -> list[tuple[str, str]]:
        """Keys of tables as displayed, and their actions."""
        found = []
        for binding in Grid.BINDINGS:
            if isinstance(binding, Binding):
                keys = (self.app.get_key_display(binding.with_key(key)) for key in binding.key.split(","))
                found.append((" ".join(keys), binding.description))
        return found

    def action_search(self) -> None:
        """Type words to find."""
        self.add_class("-searching")
        self.query_one(Input).focus()

    @on(Input.Changed)
    def _find(self, event: Input.Changed) -> None:
        self._found, self._present = self.query_one(HangingPage).find(event.value), -1
        self.action_match(1)

    @on(Input.Submitted)
    def _keep(self) -> None:
        self.remove_class("-searching")
        self.query_one(VerticalScroll).focus()

    def action_leave(self) -> None:
        """Drop the search, or close help."""
        if not self.query_one(Input).value and not self.has_class("-searching"):
            self.dismiss(None)
            return
        self.query_one(Input).value = ""
        self._keep()

    def action_match(self, direction: int) -> None:
        """Show the next match, or the one before."""
        found = next_match(self._found, self._present, direction)
        if found is not None:
            self._present = found
            page = self.query_one(HangingPage)
            page.show_match(found)
            self._show_row(page.top_of(found) - LINES_ABOVE)
        self.query_one(TextLine).put(self._search_status())

    def action_section(self, direction: int) -> None:
        """Scroll to the next section, or the one before."""
        page, box = self.query_one(HangingPage), self.query_one(VerticalScroll)
        tops = [page.top_of(number) for number in self._starts]
        found = next_match(tops, round(box.scroll_offset.y), direction)
        self._show_row(0 if found is None else found)

    def _show_row(self, row: int) -> None:
        self.query_one(VerticalScroll).scroll_to(y=max(0, row), animate=False, force=True, immediate=True)

    def _search_status(self) -> Content:
        words = self.query_one(Input).value.strip()
        if not words:
            return _status()
        if not self._found:
            return Content.assemble((f" nothing found: {words}", "$warning"))
        number = self._found.index(self._present) + 1 if self._present in self._found else 0
        return Content.assemble((f" {number} of {len(self._found)}  ", "bold"), _status())


def _status() -> Content:
    parts: list[str | tuple[str, str]] = []
    for key, words in _KEYS:
        parts += [(f" {key}", "bold $accent"), f" {words} "]
    return Content.assemble(*parts)
