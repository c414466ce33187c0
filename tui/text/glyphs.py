"""Glyphs and marks, in two sets: for UTF-8 terminals, and in plain ASCII for all others."""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct
from textual.dom import DOMNode

from collectors.latency.waterfall import Stage
from engine.events import EventKind
from engine.statistics.verdict import Verdict


class Glyphs(Struct, frozen=True):
    """One set of marks, each one cell wide; colour never carries information that they do not."""

    braille: bool
    """Whether curves are drawn in braille dots, two by four to a cell."""
    tier_marks: tuple[str, str, str, str, str]
    """Marks by value of Tier: none, kernel, sampled, exact; exact has no mark."""
    hot: str
    warm: str
    cursor: str
    descending: str
    ascending: str
    more_left: str
    more_right: str
    ellipsis: str
    """No mark of a tier: `~` would read as sampled."""
    strengths: tuple[str, str, str, str, str, str]
    """Marks of the cells of a wall: not known, none, and four more."""
    caret: str
    vertical: str
    horizontal: str
    corner: str
    tick_left: str
    tick_below: str
    grid_line: str
    event_line: str
    inspect_line: str
    played: str
    unplayed: str
    position: str
    bar_start: str
    bar_end: str
    event_marks: Mapping[EventKind, str]
    curve_samples: tuple[str, ...]
    """How the legend shows the pattern of each curve: solid, dashed, dotted, and both in turn."""
    curve_marks: tuple[str, ...]
    """Characters of curves without braille."""
    areas: tuple[str, str, str]
    """What areas are filled with: the lower part, the upper part, a whole whose parts are not known."""
    area_levels: str
    """Cells filled by eighths from the bottom, from none to all; empty if areas fill whole cells."""
    area_floor: str
    """A figure too small to fill a cell, where areas fill whole cells."""
    trend: str
    """Heights of a small history, from none to the largest."""
    heat: tuple[str, ...]
    """Density of a heat map cell from none to most, so that it reads without colour."""
    heat_lines: tuple[str, str, str]
    """Median, 99th percentile and peak over a heat map."""
    stages: Mapping[Stage, str]
    """What a stage of the waterfall is drawn with."""
    unknown: str
    """Not known, where a blank means zero."""
    verdicts: Mapping[Verdict, str]
    """Marks of the verdicts of a comparison, beside their words."""


UNICODE = Glyphs(
    braille=True,
    tier_marks=(" ", "·", "~", " ", "+"),
    hot="▲",
    warm="△",
    cursor="▸",
    descending="▼",
    ascending="▲",
    more_left="◂",
    more_right="▸",
    ellipsis="…",
    strengths=("?", "·", "░", "▒", "▓", "█"),
    caret="▏",
    vertical="│",
    horizontal="─",
    corner="└",
    tick_left="┤",
    tick_below="┬",
    grid_line="┈",
    event_line="┊",
    inspect_line="│",
    played="━",
    unplayed="─",
    position="●",
    bar_start="├",
    bar_end="┤",
    event_marks={
        EventKind.KNOB: "◆",
        EventKind.LOAD: "►",
        EventKind.HOTPLUG: "±",
        EventKind.NOTE: "¶",
        EventKind.MONITOR: "!",
        EventKind.PATH: "≠",
        EventKind.ALERT: "▲",
        EventKind.TUNE: "◇",
        EventKind.BACKGROUND: "≈",
    },
    curve_samples=("━━", "╺╸", "··", "━·"),
    curve_marks=(),
    areas=("█", "▒", "░"),
    area_levels=" ▁▂▃▄▅▆▇█",
    area_floor="▁",
    trend="▁▂▃▄▅▆▇█",
    heat=(" ", "·", "░", "░", "▒", "▒", "▓", "▓", "█"),
    heat_lines=("─", "═", "▴"),
    stages={
        Stage.SUBMIT: "▚",
        Stage.THROTTLE: "▌",
        Stage.TAG: "▒",
        Stage.QUEUE: "▓",
        Stage.SERVICE: "█",
        Stage.REAP: "▞",
        Stage.OUTSIDE: "░",
    },
    unknown="┄",
    verdicts={
        Verdict.BETTER: "✓",
        Verdict.WORSE: "✗",
        Verdict.DIFFERS: "≠",
        Verdict.EQUIVALENT: "≈",
        Verdict.UNDECIDED: "?",
    },
)

ASCII = Glyphs(
    braille=False,
    tier_marks=(" ", ":", "~", " ", "+"),
    hot="!",
    warm="*",
    cursor=">",
    descending="v",
    ascending="^",
    more_left="<",
    more_right=">",
    ellipsis="+",
    strengths=("?", ".", "-", "+", "*", "#"),
    caret="_",
    vertical="|",
    horizontal="-",
    corner="+",
    tick_left="+",
    tick_below="+",
    grid_line=".",
    event_line=":",
    inspect_line="|",
    played="=",
    unplayed="-",
    position="O",
    bar_start="[",
    bar_end="]",
    event_marks={
        EventKind.KNOB: "K",
        EventKind.LOAD: "L",
        EventKind.HOTPLUG: "H",
        EventKind.NOTE: "N",
        EventKind.MONITOR: "M",
        EventKind.PATH: "P",
        EventKind.ALERT: "A",
        EventKind.TUNE: "T",
        EventKind.BACKGROUND: "B",
    },
    curve_samples=("*", "o", "x", "+"),
    curve_marks=("*", "o", "x", "+"),
    areas=("#", "q", "%"),
    area_levels="",
    area_floor="_",
    trend="_.:-=+*#",
    heat=(" ", ".", ":", ";", "+", "x", "X", "#", "@"),
    heat_lines=("-", "=", "^"),
    stages={
        Stage.SUBMIT: "s",
        Stage.THROTTLE: "l",
        Stage.TAG: "t",
        Stage.QUEUE: "q",
        Stage.SERVICE: "#",
        Stage.REAP: "r",
        Stage.OUTSIDE: ".",
    },
    unknown="/",
    verdicts={
        Verdict.BETTER: "+",
        Verdict.WORSE: "-",
        Verdict.DIFFERS: "#",
        Verdict.EQUIVALENT: "=",
        Verdict.UNDECIDED: "?",
    },
)

_COERCED = frozenset({"C.UTF-8", "C.utf8", "UTF-8"})

GlyphSetting = Literal["auto", "unicode", "ascii"]

_CONSOLES = re.compile(r"(linux|vt\d|dumb|unknown|ansi).*")
"""Terminal types whose fonts lack braille and most marks; not vte, the library of GNOME Terminal."""


def choose_glyphs(setting: GlyphSetting, environ: Mapping[str, str] | None = None) -> Glyphs:
    """Choose the set for a setting; "auto" goes by locale and terminal type, of this process by default.

    A locale that names no character set is taken for UTF-8 as Python itself does, unless LC_ALL insists on C.
    """
    if setting != "auto":
        return UNICODE if setting == "unicode" else ASCII
    environ = given_environment() if environ is None else environ
    locale = environ.get("LC_ALL") or environ.get("LC_CTYPE") or environ.get("LANG") or ""
    charset = locale.partition(".")[2].partition("@")[0].replace("-", "").lower()
    plain_c = environ.get("LC_ALL") in ("C", "POSIX")
    narrow = charset not in ("", "utf8") or plain_c or _CONSOLES.fullmatch(environ.get("TERM", "")) is not None
    return ASCII if narrow else UNICODE


def given_environment() -> Mapping[str, str]:
    """Return the environment without the LC_CTYPE that Python sets itself where the locale is C or not installed.

    What the operator gave is in /proc/self/environ, whatever Python has made of it (PEP 538).
    """
    if os.environ.get("LC_CTYPE") not in _COERCED:
        return os.environ
    try:
        given = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return os.environ
    if any(entry.startswith(b"LC_CTYPE=") and entry != b"LC_CTYPE=" for entry in given):
        return os.environ
    return {name: value for name, value in os.environ.items() if name != "LC_CTYPE"}


@functools.cache
def _detected() -> Glyphs:
    return choose_glyphs("auto")


def glyphs_of(node: DOMNode) -> Glyphs:
    """Return the set of a widget's app: its attribute `glyphs`, or the default of the terminal."""
    chosen = getattr(node.app, "glyphs", None)
    return chosen if isinstance(chosen, Glyphs) else _detected()
