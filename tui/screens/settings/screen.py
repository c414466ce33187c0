"""The settings: value, where it comes from, what it does; changes hold for this session."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from engine.errors import LunscopeError
from engine.text import safe_text, short_text
from tui.screens.settings.shown_setting import Origin, ShownSetting, lines_to_keep, write_beside
from tui.screens.shared.chooser import Chooser, ChooserLine
from tui.textual_internals.laid_out import Modal
from tui.textual_internals.option_list import Options
from tui.widgets.line import TextLine

_FROM = {
    Origin.DEFAULT: "nothing: it is the default",
    Origin.FILE: "the settings file",
    Origin.FAULTY: "the settings file, as far as that is right: help lists what is wrong",
    Origin.START: "the start: the settings file has another value since, for the next one",
    Origin.OPTION: "an option of the command line",
    Origin.SESSION: "a change in this session",
    Origin.HOST: "what this host and the option allow",
}
NAME_WIDTH, VALUE_WIDTH = 19, 24


class SettingsDialog(Modal[None]):
    """A list of settings; Enter changes one for this session, `w` writes the changes to a new file."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,f2", "dismiss(None)", "Close", show=False),
        Binding("w", "write", "Write the changes to a file", show=False),
    ]
    DEFAULT_CSS = """
    SettingsDialog { align: center middle; }
    SettingsDialog Vertical {
        width: 78; max-width: 100%; height: 24; max-height: 100%;
        border: round $accent; padding: 0 1; background: $surface;
    }
    SettingsDialog OptionList { height: 1fr; border: none; padding: 0; text-wrap: nowrap; text-overflow: ellipsis; }
    SettingsDialog Static { height: 4; }
    """

    def __init__(self, settings: Callable[[], Sequence[ShownSetting]], file: Path | None) -> None:
        """Take what lists the settings, again after each change, and the file of those that it keeps."""
        super().__init__()
        self._settings = settings
        self._file = file
        self._listed: Sequence[ShownSetting] = ()

    def compose(self) -> ComposeResult:
        """List, description, keys."""
        box = Vertical()
        box.border_title = "Settings"
        box.border_subtitle = safe_text(str(self._file)) if self._file is not None else ""
        with box:
            yield Options(markup=False, compact=True)
            yield Static(markup=False)
            yield TextLine("Enter: change, for this session   w: write changes to a file   Esc: close")

    def on_mount(self) -> None:
        """List the settings."""
        self._list(0)

    @on(OptionList.OptionHighlighted)
    def _describe(self, event: OptionList.OptionHighlighted) -> None:
        setting = self._listed[event.option_index]
        lines = (
            Content(setting.help),
            Content.assemble(("may be  ", "dim"), setting.allowed),
            Content.assemble(("is from ", "dim"), _FROM[setting.origin]),
        )
        self.query_one(Static).update(Content("\n").join(lines))

    @on(OptionList.OptionSelected)
    def _change(self, event: OptionList.OptionSelected) -> None:
        setting = self._listed[event.option_index]
        if not setting.choices:
            self.notify(f"{setting.name} cannot be changed here: {setting.allowed}", timeout=5, markup=False)
            return
        lines = [ChooserLine(choice, choice) for choice in setting.choices]
        self.app.push_screen(
            Chooser(setting.name, lines, present=setting.value, verb="use"), lambda choice: self._use(setting, choice)
        )

    def _use(self, setting: ShownSetting, choice: str | None) -> None:
        if choice is not None:
            setting.apply(choice)
        self._list(self._position)

    def action_write(self) -> None:
        """Write what was changed to the settings file if there is none, else to a new one beside it."""
        lines = lines_to_keep(self._listed)
        if not lines or self._file is None:
            self.notify("nothing to write: only theme and alerts.bell are kept, once they were changed", markup=False)
            return
        try:
            path = write_beside(self._file, lines)
        except LunscopeError as error:
            self.notify(safe_text(str(error)), severity="error", timeout=15, markup=False)
            return
        rest = "" if path == self._file else f": move its lines into {self._file.name}"
        self.notify(f"written to {safe_text(str(path))}{rest}", timeout=15, markup=False)

    @property
    def _position(self) -> int:
        return self.query_one(OptionList).highlighted or 0

    def _list(self, position: int) -> None:
        self._listed = self._settings()
        listing = self.query_one(OptionList)
        listing.clear_options()
        listing.add_options(Option(_line(setting)) for setting in self._listed)
        listing.highlighted = min(position, len(self._listed) - 1)


def _line(setting: ShownSetting) -> Content:
    value = short_text(safe_text(setting.value), VALUE_WIDTH)
    style = "bold $accent" if setting.choices else ""
    return Content.assemble(
        setting.name.ljust(NAME_WIDTH), (value.ljust(VALUE_WIDTH), style), "  ", (str(setting.origin), "dim")
    )
