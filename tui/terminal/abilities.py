"""What a terminal understands, by TERM: sequences that it does not know are not sent."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, MutableMapping

from msgspec import Struct

_SGR = frozenset({"1", "2", "3", "4", "5", "6", "7", "8", "9", "21", "51", "52", "53"})


class Abilities(Struct, frozen=True):
    """Sequences that a terminal understands beyond those of a VT100."""

    extensions: bool = True
    """The second screen, focus and paste reports, synchronized frames, and the keyboard protocol of kitty."""
    answers: bool = True
    """Whether it reports the cursor position and its state (DSR)."""
    mouse: bool = True
    shifts: bool = True
    """Delete and insert characters (DCH, ICH): curves are moved, not drawn again."""
    partial_resets: bool = True
    """SGR 22 to 29, 39 and 49 end one attribute; without them all are ended and set again."""
    attributes: frozenset[str] = _SGR
    """SGR parameters of attributes that it draws; the others are left out."""


FULL = Abilities()
"""Emulators of xterm, and screen and tmux: they ignore the private modes that they do not know."""
CONSOLE = Abilities(extensions=False, mouse=False, attributes=frozenset({"1", "2", "4", "5", "7"}))
"""The Linux console (console_codes(4)); old kernels print the end of sequences with `>`."""
VT100 = Abilities(
    extensions=False,
    answers=False,
    mouse=False,
    shifts=False,
    partial_resets=False,
    attributes=frozenset({"1", "4", "5", "7"}),
)
"""What even terminals of unknown type mostly understand."""

_NO_COLOUR = re.compile(r"|dumb.*|unknown.*|vt\d.*|.*-m|.*-mono")
"""Not vte, which is the library of GNOME Terminal."""
_PLAIN = re.compile(r"|dumb.*|unknown.*|vt\d.*|ansi.*")


def abilities_of(environ: Mapping[str, str] = os.environ) -> Abilities:
    """Tell by TERM what the terminal understands."""
    kind = environ.get("TERM", "")
    if kind.startswith("linux"):
        return CONSOLE
    return VT100 if _PLAIN.fullmatch(kind) else FULL


def settle_colours(environ: MutableMapping[str, str]) -> None:
    """Correct what rich and Textual would take for the terminal's colours; before Textual is imported.

    rich believes COLORTERM before TERM. Programs that are started in GNU screen or on the console from an environment
    that was inherited from another terminal would send colours that are not understood there.
    """
    kind = environ.get("TERM", "")
    if _NO_COLOUR.fullmatch(kind):
        environ.setdefault("NO_COLOR", "1")
    elif kind.endswith("-direct"):
        environ.setdefault("TEXTUAL_COLOR_SYSTEM", "truecolor")
    elif kind.startswith("linux") or (kind.startswith("screen") and "TMUX" not in environ):
        colours = "256" if kind.endswith("-256color") else "standard"
        environ.setdefault("TEXTUAL_COLOR_SYSTEM", colours)
