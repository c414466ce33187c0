"""The knobs with their values and keys, and what the last turn of one changed; below, steps and stored sets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence

from msgspec import Struct
from textual.app import ComposeResult
from textual.containers import Horizontal
from textual.content import Content

from collectors.field import Unit
from engine.job.describe import knob_changes
from engine.job.knobs import Knob, Knobs, Row, StepKey, StepSize, knob_rows
from engine.text import safe_text
from tui.load.effect import Effect, change_pct, has_enough_ios
from tui.load.knob_memory import KnobMemory, KnobSlot
from tui.text.format import SECOND_NS, format_quantity, span_text
from tui.widgets.line import TextLine

PERCENTILE_TIMES = 10
"""A change of a percentile needs ten I/Os beyond it on each side: this many times those of the percentile."""
NOTABLE_PCT = 5.0
ROW_WIDTH = 36
"""Width of a figure with its change."""


class EffectPanel(TextLine):
    """IOPS and latencies before and after, their change, and the length of both windows."""

    DEFAULT_CSS = """
    EffectPanel { height: 1fr; width: 1fr; min-width: 35; }
    """

    def show(self, effect: Effect, now_ns: int) -> None:
        """Show what the last turn did; `now_ns` is CLOCK_MONOTONIC."""
        room = self.size.width or WIDE
        self.put(Content("\n").join([_title(effect, now_ns, room), _windows(effect), *_rows(effect, room)]))


def _title(effect: Effect, now_ns: int, room: int) -> Content:
    """Write turn and time; what the turn was is cut first."""
    if effect.turned_ns is None:
        return Content.assemble(("effect of the next knob turn", "dim"))
    since = span_text((now_ns - effect.turned_ns) / SECOND_NS)
    ended = ", ended" if effect.ended else ""
    text = safe_text(effect.text)
    when = next((each for each in (f"  {since} ago{ended}", f" {since}{ended}") if len(text) + len(each) <= room), "")
    when = when or f" {since}{ended}"
    shown = text if len(text) + len(when) <= room else f"{text[: max(0, room - len(when) - 1)]}…"
    return Content.assemble((shown, "bold"), (when, "dim"))


def _windows(effect: Effect) -> Content:
    before_s, after_s = effect.before.length_s, effect.after.length_s
    if effect.turned_ns is None:
        return Content.assemble((f"{'':<19}{_length(after_s, 'now'):>14}", "dim"))
    lengths = f"{_length(before_s, 'before'):>16} | {_length(after_s, 'after'):<12}"
    return Content.assemble((lengths, "dim"), _pending(effect))


def _length(seconds: float, side: str) -> str:
    """Text such as "12 s before"; a window without intervals has no length."""
    digits = 0 if seconds >= 10 or abs(seconds - round(seconds)) < 0.05 else 1
    return f"{seconds:.{digits}f} s {side}" if seconds else f"{side}: none yet"


def _pending(effect: Effect) -> tuple[str, str]:
    """Say why no changes are shown yet."""
    if effect.ended or effect.is_long_enough:
        return "", ""
    return (" measuring" if effect.before.length_s and effect.after.length_s else ""), "dim"


def _rows(effect: Effect, room: int) -> list[Content]:
    enough = effect.is_long_enough and has_enough_ios(effect)
    ranked = effect.is_long_enough and has_enough_ios(effect, PERCENTILE_TIMES)
    before, after = effect.before, effect.after
    rows = [
        _row("IOPS", before.iops, after.iops, Unit.PER_SECOND, good=1 if enough else 0),
        _row("mean ms", before.mean_ms, after.mean_ms, Unit.MILLISECONDS, good=-1 if enough else 0),
        _row("p99 ms", before.p99_ms, after.p99_ms, Unit.MILLISECONDS, good=-1 if ranked else 0),
        _row("peak ms", before.max_ms, after.max_ms, Unit.MILLISECONDS, good=0, grey=not enough),
    ]
    return [figures + Content(" " if room < ROW_WIDTH else "  ") + change for figures, change in rows]


def _row(
    title: str, before: float, after: float, unit: Unit, *, good: int, grey: bool | None = None
) -> tuple[Content, Content]:
    """One figure, and its change; `good` is 1 where larger is better, -1 where smaller is, 0 if it is not rated."""
    change = change_pct(before, after) if good else math.nan
    text = (f"{change:+.0f} %" if abs(change) >= 0.5 else "0 %") if math.isfinite(change) else ""
    style = "" if not text or abs(change) < NOTABLE_PCT else "bold $success" if change * good > 0 else "bold $warning"
    faint = "dim" if (not good if grey is None else grey) else ""
    figures = f"{format_quantity(before, unit, 7):>8} ->{format_quantity(after, unit, 7):>8}"
    return Content.assemble((f"{title:<8}", "dim"), (figures, faint)), Content.assemble((f"{text:>7}", style))


WIDE, WIDE_TITLE = 42, 13
NARROW_TITLE, NARROW_VALUE = 7, 10
KeyText = Callable[[str], str]
"""Maps an action id to its displayed key."""


class KnobPanel(TextLine):
    """Title, decrease key, value and increase key of every knob: one per line where there is room, else two columns."""

    DEFAULT_CSS = """
    KnobPanel { height: 1fr; width: 42; }
    """

    def show(self, knobs: Knobs | None, targets: int, key_text: KeyText | None, *, policy: bool = False) -> None:
        """Show the values in force.

        Args:
            knobs: None if not known.
            targets: their number, the largest stripe width.
            key_text: None if the knobs cannot be turned.
            policy: whether the job has several paths or copies.
        """
        texts = [
            _Text.of(knob, row, knobs, targets, key_text) for knob, row in knob_rows() if policy or not row.of_paths
        ]
        if self.size.width >= WIDE:
            lines = [text.line(WIDE_TITLE, text.width) + text.more for text in texts]
            self.put(Content("\n").join(lines if self.size.height >= len(texts) else _two_columns(texts)))
        else:
            self.put(Content("\n").join(text.line(NARROW_TITLE, NARROW_VALUE, text.short) for text in texts))


class _Text(Struct, frozen=True):
    """The texts of one knob."""

    title: str
    short: str
    value: str
    brief: str
    down: str
    up: str
    width: int
    of_paths: bool
    more: Content
    """Other keys of the knob."""

    @classmethod
    def of(cls, knob: Knob, row: Row, knobs: Knobs | None, targets: int, key_text: KeyText | None) -> _Text:
        """Take value and keys of a knob."""
        value = "?" if knobs is None else knob.shown(knobs, targets)
        down, up = ("", "") if key_text is None else (_key(row.down, key_text), _key(row.up, key_text))
        brief = value if knobs is None or row.brief is None else row.brief(knobs)
        return cls(row.title, row.short, value, brief, down, up, row.width, row.of_paths, _more(row, key_text))

    def line(self, title_width: int, value_width: int, title: str | None = None) -> Content:
        """Write title, key, value, key."""
        shown = self.value if len(self.value) <= value_width else self.brief
        shown = shown if len(shown) <= value_width else shown[: value_width - 1] + "…"
        return Content.assemble(
            f" {self.title if title is None else title:<{title_width}}",
            (f"{self.down:>2}", "bold $accent"),
            (f" {shown:^{value_width}} ", "bold reverse"),
            (f"{self.up:<2}", "bold $accent"),
        )


def _two_columns(texts: Sequence[_Text]) -> list[Content]:
    """Lay out knobs with short values in two columns, then other keys, and the knobs of paths."""
    narrow = [text for text in texts if not text.of_paths]
    half = (len(narrow) + 1) // 2
    pairs = itertools.zip_longest(narrow[:half], narrow[half:])
    lines = [left.line(5, 8, left.short) + (right.line(7, 8, right.short) if right else "") for left, right in pairs]
    lines += [Content(f" {text.short}") + text.more for text in narrow if text.more.plain]
    return lines + [text.line(11, text.width) for text in texts if text.of_paths]


def _more(row: Row, key_text: KeyText | None) -> Content:
    """Name the other keys of a knob."""
    if not row.more or key_text is None:
        return Content("")
    keys = " ".join(_key(key, key_text) for key in reversed(row.more))
    return Content.assemble(" ", (keys, "bold $accent"), (f" {row.hint}", "dim"))


def _key(key: StepKey, key_text: KeyText) -> str:
    return key_text(f"knob.{key.id}")


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
