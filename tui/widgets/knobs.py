"""The knobs with their values, and beside each the keys that turn it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from textual.content import Content

from engine.job.distribution_text import format_distribution
from engine.job.sizes import format_blocks
from engine.job.spec import Knobs
from tui.widgets.line import TextLine

VALUE_WIDTH = 11
KeyText = Callable[[str], str]
"""From an action id to the key as it is shown."""


@dataclass(frozen=True, slots=True)
class KnobRow:
    """One knob of the panel; `down` and `up` are action ids."""

    title: str
    down: str
    up: str
    value: Callable[[Knobs, int], str]
    more: tuple[str, ...] = ()
    hint: str = ""
    width: int = VALUE_WIDTH


ROWS = (
    KnobRow(
        "Queue depth",
        "knob.queue_depth_down",
        "knob.queue_depth_up",
        lambda knobs, _targets: str(knobs.queue_depth),
        ("knob.queue_depth_halve", "knob.queue_depth_double"),
        "/2 x2",
    ),
    KnobRow(
        "Stripe width",
        "knob.stripe_width_down",
        "knob.stripe_width_up",
        lambda knobs, targets: f"{knobs.stripe_width} of {targets}",
    ),
    KnobRow(
        "Block size",
        "knob.block_size_down",
        "knob.block_size_up",
        lambda knobs, _targets: _sizes(knobs),
    ),
    KnobRow(
        "Reads",
        "knob.read_share_down",
        "knob.read_share_up",
        lambda knobs, _targets: f"{knobs.read_pct:g} %",
    ),
    KnobRow(
        "Rate limit",
        "knob.rate_down",
        "knob.rate_up",
        lambda knobs, _targets: "none" if knobs.rate_iops is None else f"{knobs.rate_iops:,.0f}/s",
    ),
    KnobRow("Mode", "knob.mode_previous", "knob.mode_next", lambda knobs, _targets: knobs.mode),
    KnobRow("Threads", "knob.threads_down", "knob.threads_up", lambda knobs, _targets: str(knobs.threads)),
    KnobRow(
        "Distribution",
        "knob.distribution_previous",
        "knob.distribution_next",
        lambda knobs, _targets: format_distribution(knobs.distribution),
    ),
)
ALWAYS = 5
"""So many of them are shown however low the screen."""
POLICY_ROW = KnobRow(
    "Path policy",
    "knob.policy_previous",
    "knob.policy_next",
    lambda knobs, _targets: knobs.policy.value,
    width=22,
)
"""Shown where there is anything to choose among."""


class KnobPanel(TextLine):
    """One line per knob: title, key down, value, key up; the first five where there is no room for more."""

    DEFAULT_CSS = """
    KnobPanel { height: 1fr; width: 42; }
    """

    def show(self, knobs: Knobs, targets: int, key_text: KeyText, *, policy: bool = False) -> None:
        """Show the values in force; `policy` where the job has paths or copies to choose among."""
        rows = (*ROWS[:ALWAYS], POLICY_ROW, *ROWS[ALWAYS:]) if policy else ROWS
        self.put(Content("\n").join(_line(row, knobs, targets, key_text) for row in rows))


def _sizes(knobs: Knobs) -> str:
    """Write the sizes of reads, and those of writes where they have their own."""
    own = "" if knobs.write_blocks is None else f"/{format_blocks(knobs.write_blocks)}"
    return f"{format_blocks(knobs.blocks)}{own}"


def _line(row: KnobRow, knobs: Knobs, targets: int, key_text: KeyText) -> Content:
    value = row.value(knobs, targets)
    shown = value if len(value) <= row.width else value[: row.width - 1] + "…"
    parts: list[tuple[str, str] | str] = [
        f" {row.title:<13}",
        (f"{key_text(row.down):>2}", "bold $accent"),
        (f" {shown:^{row.width}} ", "bold reverse"),
        (f"{key_text(row.up):<2}", "bold $accent"),
    ]
    if row.more:
        keys = " ".join(key_text(action_id) for action_id in row.more)
        parts += [" ", (keys, "bold $accent"), (f" {row.hint}", "dim")]
    return Content.assemble(*parts)
