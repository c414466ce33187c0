"""One line below the knobs: size of the steps, turns to undo, and the two stored sets of knobs."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content

from engine.job.describe import knob_changes
from engine.job.knobs import Knobs, StepSize
from tui.load.knob_memory import KnobMemory, KnobSlot
from tui.widgets.knobs import EffectPanel, KnobPanel
from tui.widgets.line import TextLine

KeyText = Callable[[str], str]
_Part = tuple[str, str]
SAME = "equal"


def compose_knobs() -> ComposeResult:
    """Lines of a load: its state, the knobs beside their effect, the slots, and the last message."""
    yield TextLine(" ", id="load_state")
    with Horizontal(id="knob_row"):
        yield KnobPanel()
        yield EffectPanel()
    yield SlotLine(" ", id="slots")
    yield TextLine(" ", id="load_message")


class SlotLine(TextLine):
    """Written so that what matters most comes first: narrow terminals cut the end."""

    def show(self, memory: KnobMemory | None, now: Knobs | None, size: StepSize, key_text: KeyText) -> None:
        """Show the memory of a load; empty where none is driven."""
        if memory is None or now is None:
            self.put(" ")
        else:
            self.put(Content.assemble(*_slots(memory, now, key_text), *_steps(memory, now, size, key_text)))


def _slots(memory: KnobMemory, now: Knobs, key_text: KeyText) -> Iterator[_Part]:
    here = memory.in_force(now)
    for slot in KnobSlot:
        yield f" {key_text(f'load.store_{slot.lower()}')}", "bold $accent"
        stored = memory.stored(slot) is not None
        yield " ", ""
        yield (
            (f"{slot}* " if slot is here else f"{slot} " if stored else f"{slot} empty "),
            ("bold reverse" if slot is here else "" if stored else "dim"),
        )
    yield f" {key_text('load.flip')}", "bold $accent"
    yield " A/B  ", ""


def _steps(memory: KnobMemory, now: Knobs, size: StepSize, key_text: KeyText) -> Iterator[_Part]:
    yield key_text("load.undo"), "bold $accent"
    yield f" undo {memory.steps_back(now)}  ", ""
    yield key_text("load.step"), "bold $accent"
    yield f" {size} steps  ", "" if size is StepSize.NORMAL else "bold $warning"
    yield from _difference(memory)


def _difference(memory: KnobMemory) -> Iterator[_Part]:
    """Say in which knobs B differs from A."""
    a, b = memory.stored(KnobSlot.A), memory.stored(KnobSlot.B)
    if a is not None and b is not None:
        changes = ", ".join(change.text for change in knob_changes(a, b))
        yield f"A -> B: {changes or SAME}", "dim"
