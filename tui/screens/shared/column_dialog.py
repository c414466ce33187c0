"""The dialog that chooses the columns of a grid and their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from tui.text.columns import GridColumn
from tui.textual_internals.laid_out import Modal
from tui.textual_internals.option_list import Options
from tui.widgets.line import TextLine

TITLE_WIDTH = 12


class ColumnDialog(Modal[tuple[str, ...] | None]):
    """A list of columns, the shown ones first; returns the ids of those chosen, in order, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", "Leave", show=False),
        Binding("space,x", "show_or_hide", "Show or hide", show=False, priority=True),
        Binding("shift+up,K,less_than_sign", "shift(-1)", "Earlier", show=False, priority=True),
        Binding("shift+down,J,greater_than_sign", "shift(1)", "Later", show=False, priority=True),
        Binding("r", "reset", "As at first", show=False, priority=True),
    ]
    DEFAULT_CSS = """
    ColumnDialog { align: center middle; }
    ColumnDialog Vertical {
        width: 76; max-width: 100%; height: 22; max-height: 100%;
        border: round $accent; padding: 0 1; background: $surface;
    }
    ColumnDialog OptionList { height: 1fr; border: none; padding: 0; text-wrap: nowrap; text-overflow: ellipsis; }
    """

    def __init__(
        self,
        offered: Sequence[GridColumn],
        shown: Sequence[GridColumn],
        defaults: Sequence[GridColumn],
        help_texts: Mapping[str, str],
    ) -> None:
        """Take all columns, those shown, those shown at first, and what each means by its id."""
        super().__init__()
        self._offered = {column.field_id: column for column in offered}
        self._defaults = [column.field_id for column in defaults]
        self._help_texts = help_texts
        self._arrange([column.field_id for column in shown])

    def compose(self) -> ComposeResult:
        """List and keys."""
        box = Vertical()
        box.border_title = "Columns"
        with box:
            yield Options(markup=False, compact=True)
            yield TextLine("Space: show, hide   < >: move   r: reset   Enter: use   Esc: cancel")

    def on_mount(self) -> None:
        """List the columns."""
        self._list(0)

    def action_show_or_hide(self) -> None:
        """Show or hide the column under the cursor."""
        position = self._position
        self._shown ^= {self._ids[position]}
        self._list(min(position + 1, len(self._ids) - 1))

    def action_shift(self, lines: int) -> None:
        """Move the column under the cursor up or down."""
        position, ids = self._position, self._ids
        target = position + lines
        if 0 <= target < len(ids):
            ids[position], ids[target] = ids[target], ids[position]
            self._list(target)

    def action_reset(self) -> None:
        """Choose the columns of a new grid."""
        self._arrange(self._defaults)
        self._list(0)

    @on(OptionList.OptionSelected)
    def _use(self) -> None:
        chosen = tuple(field_id for field_id in self._ids if field_id in self._shown)
        if chosen:
            self.dismiss(chosen)
        else:
            self.notify("show at least one column: Space on its line", severity="warning", markup=False)

    @property
    def _position(self) -> int:
        return self.query_one(OptionList).highlighted or 0

    def _arrange(self, shown: Sequence[str]) -> None:
        self._shown = set(shown)
        self._ids = [*shown, *(field_id for field_id in self._offered if field_id not in self._shown)]

    def _list(self, position: int) -> None:
        listing = self.query_one(OptionList)
        listing.clear_options()
        listing.add_options(Option(self._line(field_id)) for field_id in self._ids)
        listing.highlighted = position

    def _line(self, field_id: str) -> Content:
        mark = "[x]" if field_id in self._shown else "[ ]"
        column = self._offered[field_id]
        text = self._help_texts.get(field_id, "")
        return Content.assemble(f"{mark} {column.title:<{TITLE_WIDTH}} {column.unit:<4}", (text, "dim"))
