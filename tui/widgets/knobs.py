"""The knobs with their values, and beside each the keys that turn it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textual.content import Content

from engine.job.distribution_text import format_distribution
from engine.job.sizes import format_blocks
from engine.job.spec import Knobs
from tui.widgets.line import TextLine

VALUE_WIDTH = 11
WIDE, WIDE_TITLE = 42, 13
NARROW_TITLE, NARROW_VALUE = 7, 10
KeyText = Callable[[str], str]
"""From an action id to the key as it is shown."""


@dataclass(frozen=True, slots=True)
class KnobRow:
    """One knob of the panel; `down` and `up` are action ids."""

    title: str
    short: str
    """Title where there is little room."""
    down: str
    up: str
    value: Callable[[Knobs, int], str]
    more: tuple[str, ...] = ()
    hint: str = ""
    width: int = VALUE_WIDTH


ROWS = (
    KnobRow(
        "Queue depth",
        "Depth",
        "knob.queue_depth_down",
        "knob.queue_depth_up",
        lambda knobs, _targets: str(knobs.queue_depth),
        ("knob.queue_depth_halve", "knob.queue_depth_double"),
        "/2 x2",
    ),
    KnobRow(
        "Stripe width",
        "Width",
        "knob.stripe_width_down",
        "knob.stripe_width_up",
        lambda knobs, targets: f"{knobs.stripe_width} of {targets}",
    ),
    KnobRow(
        "Block size",
        "Block",
        "knob.block_size_down",
        "knob.block_size_up",
        lambda knobs, _targets: _sizes(knobs),
    ),
    KnobRow(
        "Reads",
        "Reads",
        "knob.read_share_down",
        "knob.read_share_up",
        lambda knobs, _targets: f"{knobs.read_pct:g} %",
    ),
    KnobRow(
        "Rate limit",
        "Rate",
        "knob.rate_down",
        "knob.rate_up",
        lambda knobs, _targets: "none" if knobs.rate_iops is None else f"{knobs.rate_iops:,.0f}/s",
    ),
    KnobRow("Mode", "Mode", "knob.mode_previous", "knob.mode_next", lambda knobs, _targets: knobs.mode),
    KnobRow("Threads", "Threads", "knob.threads_down", "knob.threads_up", lambda knobs, _targets: str(knobs.threads)),
    KnobRow(
        "Distribution",
        "Places",
        "knob.distribution_previous",
        "knob.distribution_next",
        lambda knobs, _targets: format_distribution(knobs.distribution),
    ),
)
POLICY_ROW = KnobRow(
    "Path policy",
    "Path policy",
    "knob.policy_previous",
    "knob.policy_next",
    lambda knobs, _targets: knobs.policy.value,
    width=22,
)
"""Shown where there is anything to choose among."""


class KnobPanel(TextLine):
    """Title, key down, value and key up of every knob: one a line where there is room, else in two columns."""

    DEFAULT_CSS = """
    KnobPanel { height: 1fr; width: 42; }
    """

    def show(self, knobs: Knobs | None, targets: int, key_text: KeyText | None, *, policy: bool = False) -> None:
        """Show the values in force.

        Args:
            knobs: None where they are not known.
            targets: how many there are to be as wide as.
            key_text: None where nothing can be turned.
            policy: whether the job has paths or copies to choose among.
        """
        rows = (*ROWS, POLICY_ROW) if policy else ROWS
        texts = [_Text.of(row, knobs, targets, key_text) for row in rows]
        if self.size.width >= WIDE:
            lines = [
                text.line(WIDE_TITLE, row.width) + _more(row, key_text) for text, row in zip(texts, rows, strict=True)
            ]
            self.put(Content("\n").join(lines if self.size.height >= len(rows) else _two_columns(texts, key_text)))
        else:
            self.put(Content("\n").join(text.line(NARROW_TITLE, NARROW_VALUE, text.short) for text in texts))


@dataclass(frozen=True, slots=True)
class _Text:
    """What is written of one knob."""

    title: str
    short: str
    value: str
    down: str
    up: str

    @classmethod
    def of(cls, row: KnobRow, knobs: Knobs | None, targets: int, key_text: KeyText | None) -> _Text:
        """Take value and keys of a knob."""
        value = "?" if knobs is None else row.value(knobs, targets)
        down, up = ("", "") if key_text is None else (key_text(row.down), key_text(row.up))
        return cls(row.title, row.short, value, down, up)

    def line(self, title_width: int, value_width: int, title: str | None = None) -> Content:
        """Write title, key, value, key."""
        shown = self.value if len(self.value) <= value_width else self.value[: value_width - 1] + "…"
        return Content.assemble(
            f" {self.title if title is None else title:<{title_width}}",
            (f"{self.down:>2}", "bold $accent"),
            (f" {shown:^{value_width}} ", "bold reverse"),
            (f"{self.up:<2}", "bold $accent"),
        )


def _two_columns(texts: Sequence[_Text], key_text: KeyText | None) -> list[Content]:
    """Write the knobs that have short values side by side, then the keys that halve and double, and the policy."""
    half = len(ROWS) // 2
    columns = zip(texts[:half], texts[half : 2 * half], strict=True)
    lines = [left.line(5, 8, left.short) + right.line(7, 8, right.short) for left, right in columns]
    depth = _more(ROWS[0], key_text)
    lines += [Content(" Depth") + depth] if depth.plain else []
    return lines + [text.line(11, POLICY_ROW.width) for text in texts[2 * half :]]


def _more(row: KnobRow, key_text: KeyText | None) -> Content:
    """Name the further keys of a knob."""
    if not row.more or key_text is None:
        return Content("")
    keys = " ".join(key_text(action_id) for action_id in row.more)
    return Content.assemble(" ", (keys, "bold $accent"), (f" {row.hint}", "dim"))


def _sizes(knobs: Knobs) -> str:
    """Write the sizes of reads, and those of writes where they have their own."""
    own = "" if knobs.write_blocks is None else f"/{format_blocks(knobs.write_blocks)}"
    return f"{format_blocks(knobs.blocks)}{own}"
