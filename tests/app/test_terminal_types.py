"""Every type of terminal gets only what it understands: colours, attributes, control sequences, characters."""

from __future__ import annotations

import itertools
import re
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bench.terminal import Terminal
from tests.kernel.forked_command import ForkedTerminal
from tui.terminal.abilities import CONSOLE, FULL, VT100, Abilities, abilities_of, settle_colours
from tui.terminal.modes import CLEAR, enter, leave
from tui.text.glyphs import Glyphs, choose_glyphs

RECORDING = Path(__file__).parents[1] / "recordings" / "multipath.luns"
KEYS = ("2", "4", "5", "x", "\r", "\x1b", "6", "7", "8", "9", "3", "?", "\x1b", "1")
PATIENCE_S = 60.0
MOST_S = 3.0
"""For what a key draws; some draw nothing."""
QUIET_S = 0.15
MUCH = 8_000
SEQUENCE = re.compile(rb"\x1b(?:\[([<-?]?)([0-9;]*)([ -/]*)([@-~])|\](?:[^\x07\x1b]*)(?:\x07|\x1b\\)|([^\[\]]))")
PLAIN_MODES = {b"25", b"7"}
EXTENSIONS = {b"1049", b"1004", b"2004", b"2026"}
MOUSE = {b"1000", b"1003", b"1015", b"1006"}


@dataclass(frozen=True)
class Kind:
    """An environment, and what may be sent there."""

    name: str
    environment: Mapping[str, str]
    colours: str = "none"
    """none, 16, 256 or truecolor."""
    is_ascii: bool = False
    finals: frozenset[bytes] = field(default_factory=lambda: frozenset(b.encode() for b in "HABCDKJmhlP@nup"))
    modes: frozenset[bytes] = frozenset(PLAIN_MODES | EXTENSIONS | MOUSE)
    attributes: frozenset[int] = frozenset({*range(10), *range(21, 30), 39, 49})
    like_others: bool = False
    """Whether others show what is sent to it: those of its abilities, and those of its colours."""

    @property
    def drawn_with(self) -> tuple[Abilities, Glyphs]:
        """What screens are drawn by, beside colours."""
        return abilities_of(self.environment), choose_glyphs("auto", self.environment)


_MINIMAL = frozenset(b.encode() for b in "HABCDKJmhl")


def _minimal(kind: str, *, like_others: bool = False, **environment: str) -> Kind:
    modes, attributes = frozenset(PLAIN_MODES), frozenset({0, 1, 4, 5, 7})
    return Kind(kind, {"TERM": kind, **environment}, "none", True, _MINIMAL, modes, attributes, like_others)


KINDS = (
    Kind("truecolor", {"TERM": "xterm-256color", "COLORTERM": "truecolor"}, "truecolor"),
    Kind("direct", {"TERM": "xterm-direct"}, "truecolor", like_others=True),
    Kind("256", {"TERM": "xterm-256color"}, "256"),
    Kind("16", {"TERM": "xterm-16color"}, "16"),
    Kind("xterm", {"TERM": "xterm"}, "16", like_others=True),
    Kind("tmux", {"TERM": "tmux-256color", "TMUX": "/tmp/x,1,0"}, "256", like_others=True),
    Kind("screen", {"TERM": "screen", "COLORTERM": "truecolor"}, "16", like_others=True),
    Kind("screen-256", {"TERM": "screen-256color", "COLORTERM": "truecolor"}, "256", like_others=True),
    Kind("no colour", {"TERM": "xterm-256color", "COLORTERM": "truecolor", "NO_COLOR": "1"}),
    Kind("another character set", {"TERM": "xterm-256color", "LC_ALL": "de_DE.ISO-8859-1"}, "256", is_ascii=True),
    Kind("C", {"TERM": "xterm", "LC_ALL": "C"}, "16", is_ascii=True, like_others=True),
    Kind(
        "linux",
        {"TERM": "linux", "COLORTERM": "truecolor"},
        "16",
        is_ascii=True,
        finals=frozenset({*_MINIMAL, b"P", b"@", b"n"}),
        modes=frozenset(PLAIN_MODES),
        attributes=frozenset({0, 1, 2, 4, 5, 7, 22, 24, 25, 27, 39, 49}),
    ),
    _minimal("vt100"),
    _minimal("vt220", like_others=True, COLORTERM="truecolor"),
    _minimal("dumb", like_others=True),
    _minimal("unknown", like_others=True),
)


@pytest.fixture(autouse=True)
def clean(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name in ("NO_COLOR", "TMUX", "LC_ALL", "LC_CTYPE", "TERM_PROGRAM", "TEXTUAL_COLOR_SYSTEM", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("LANG", "C.UTF-8")
    monkeypatch.setenv("COLORTERM", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def replayed(environment: Mapping[str, str]) -> tuple[bytes, int]:
    """Replay on a terminal of this environment, press keys, quit; returns all that was sent, and the exit code."""
    if not _is_settled_by_the_start(environment):
        return forked(keys=KEYS, **environment)
    command = (sys.executable, "-m", "tui", "replay", str(RECORDING))
    return with_keys(Terminal(command, 80, 24, environment={"COLORTERM": "", **environment}), KEYS)


def _is_settled_by_the_start(environment: Mapping[str, str]) -> bool:
    """Whether Python or Textual read what it depends on when they are started or imported: a fork would not."""
    settled = dict(environment)
    settle_colours(settled)
    return "LC_ALL" in settled or "TEXTUAL_COLOR_SYSTEM" in settled


def forked(*options: str, keys: tuple[str, ...], **environment: str) -> tuple[bytes, int]:
    """Do the same in a forked process."""
    words = ("replay", str(RECORDING), *options)
    return with_keys(ForkedTerminal(words, 80, 24, environment={"COLORTERM": "", **environment}), keys)


def with_keys(terminal: Terminal, keys: tuple[str, ...]) -> tuple[bytes, int]:
    """Press keys and quit; returns all that was sent, and the exit code."""
    try:
        assert terminal.drain(PATIENCE_S, until=b"Help") is not None, bytes(terminal.output)
        for key in keys:
            terminal.press(key)
            settle(terminal)
        quit_(terminal)
        return bytes(terminal.output), terminal.close()
    finally:
        terminal.close()


def settle(terminal: Terminal) -> None:
    """Read what a key draws, to its end."""
    before, deadline_s = len(terminal.output), time.monotonic() + MOST_S
    seen = before
    while time.monotonic() < deadline_s:
        terminal.drain(QUIET_S)
        if len(terminal.output) == seen != before:
            return
        seen = len(terminal.output)


def quit_(terminal: Terminal) -> None:
    """Close what is open, and quit; again where Esc and the next key arrived together, which is another key."""
    deadline_s = time.monotonic() + PATIENCE_S
    while terminal.alive() and time.monotonic() < deadline_s:
        for key in ("\x1b", "q"):
            with suppress(OSError):
                terminal.press(key)
            terminal.drain(0.5)
    assert not terminal.alive()


@pytest.mark.slow
@pytest.mark.parametrize("kind", [kind for kind in KINDS if not kind.like_others], ids=lambda kind: kind.name)
def test_a_terminal_gets_what_it_understands_and_nothing_else(kind: Kind) -> None:
    sent, code = replayed(kind.environment)
    assert code == 0
    assert len(sent) > MUCH, "the screens were drawn"
    assert not kind.is_ascii or sent.isascii()
    used: set[int] = set()
    depths: set[str] = set()
    for private, numbers, between, final, other in SEQUENCE.findall(sent):
        if not final:
            assert not other or kind.finals != _MINIMAL, other
            continue
        assert final in kind.finals, (private, numbers, final)
        assert kind.modes >= EXTENSIONS or not between, between
        if private == b"?" and final in b"hl":
            assert set(numbers.split(b";")) <= kind.modes, numbers
        elif final == b"m":
            depths |= _depths(numbers, used)
    assert used <= kind.attributes, used - kind.attributes
    assert depths == {"none": set(), "16": {"16"}}.get(kind.colours, depths | {kind.colours})
    assert "truecolor" not in depths or kind.colours == "truecolor"
    assert b"\x1b]" not in sent or kind.modes >= EXTENSIONS


def test_what_is_sent_to_kinds_like_others_is_that_of_those() -> None:
    whole = [kind for kind in KINDS if not kind.like_others]
    for kind in KINDS:
        assert kind.drawn_with in [other.drawn_with for other in whole], kind.name
        assert kind.colours in [other.colours for other in whole], kind.name


def _depths(numbers: bytes, used: set[int]) -> set[str]:
    """Return the depths of the colours of SGR parameters; the other parameters are added to those used."""
    codes = iter([int(number or 0) for number in numbers.split(b";")])
    depths = set()
    for code in codes:
        if code in (38, 48):
            depths.add("truecolor" if next(codes) == 2 else "256")
            _ = [next(codes) for _ in range(3 if "truecolor" in depths else 1)]
        elif 30 <= code <= 37 or 40 <= code <= 47 or 90 <= code <= 107:
            depths.add("16")
        else:
            used.add(code)
    return depths


@pytest.mark.slow
@pytest.mark.parametrize("settings", ["", "mouse = false\n"], ids=["option", "setting"])
def test_without_the_mouse_no_reports_are_asked_for(settings: str, tmp_path: Path) -> None:
    (tmp_path / "lunscope").mkdir()
    (tmp_path / "lunscope" / "config.toml").write_text(settings)
    sent, code = forked(*(() if settings else ("--no-mouse",)), keys=("5",))
    assert code == 0
    assert not MOUSE & set(re.findall(rb"\x1b\[\?(\d+)[hl]", sent))


@pytest.mark.slow
def test_with_the_mouse_reports_are_asked_for_and_ended() -> None:
    sent, _ = forked(keys=())
    for mode in MOUSE:
        assert b"\x1b[?%bh" % mode in sent
        assert b"\x1b[?%bl" % mode in sent


def test_types_by_their_names() -> None:
    full = ("xterm-256color", "screen", "tmux-256color", "vte-256color", "rxvt-unicode", "foot", "alacritty", "st")
    for name in full:
        assert abilities_of({"TERM": name}) is FULL, name
    for name in ("linux", "linux-16color"):
        assert abilities_of({"TERM": name}) is CONSOLE, name
    for name in ("", "dumb", "unknown", "vt100", "vt220", "vt52", "ansi"):
        assert abilities_of({"TERM": name}) is VT100, name
    assert abilities_of({}) is VT100


@pytest.mark.parametrize(
    ("environment", "added"),
    [
        ({"TERM": "xterm-256color", "COLORTERM": "truecolor"}, {}),
        ({"TERM": "screen", "COLORTERM": "truecolor"}, {"TEXTUAL_COLOR_SYSTEM": "standard"}),
        ({"TERM": "screen-256color", "COLORTERM": "truecolor"}, {"TEXTUAL_COLOR_SYSTEM": "256"}),
        ({"TERM": "screen-256color", "COLORTERM": "truecolor", "TMUX": "x"}, {}),
        ({"TERM": "linux"}, {"TEXTUAL_COLOR_SYSTEM": "standard"}),
        ({"TERM": "xterm-direct"}, {"TEXTUAL_COLOR_SYSTEM": "truecolor"}),
        ({"TERM": "vt100"}, {"NO_COLOR": "1"}),
        ({"TERM": "xterm-mono"}, {"NO_COLOR": "1"}),
        ({"TERM": "vte"}, {}),
        ({}, {"NO_COLOR": "1"}),
        ({"TERM": "linux", "TEXTUAL_COLOR_SYSTEM": "256"}, {}),
    ],
)
def test_colours_by_type(environment: dict[str, str], added: dict[str, str]) -> None:
    settled = dict(environment)
    settle_colours(settled)
    assert settled == environment | added


def test_terminals_without_a_second_screen_are_cleared_when_they_are_left() -> None:
    for abilities in (FULL, CONSOLE, VT100):
        assert CLEAR in leave(mouse=True, abilities=abilities)
        assert CLEAR not in leave(mouse=True, abilities=abilities, clear="")
    for abilities in (CONSOLE, VT100):
        assert CLEAR in enter(mouse=False, abilities=abilities)
        assert "1049" not in enter(mouse=False, abilities=abilities)


def test_the_console_is_not_asked_for_reports_of_the_mouse() -> None:
    assert "1000" not in enter(mouse=False, abilities=CONSOLE)


LOAD = ("run", "--size", "4M", "--rate", "100")
SUMMED_UP = {"", "watched", "hottest", "disks", "paths", "events", "recording", "not seen"}
"""What lines of the summary begin with."""
SWEEP = ("sweep", "--size", "4M", "--vary", "qd=1,2")


@pytest.mark.slow
@pytest.mark.parametrize(("verb", "below"), [(("watch",), ""), (LOAD, "IOPS"), (SWEEP, "not complete: stopped")])
def test_leaving_sums_up_what_was_seen_on_the_terminal(verb: tuple[str, ...], below: str) -> None:
    terminal = ForkedTerminal((*verb, "--tier", "kernel", "--interval", "0.2"), 80, 24)
    try:
        assert terminal.drain(PATIENCE_S, until=b"LIVE") is not None
        terminal.drain(1.5)
        terminal.press("q")
        terminal.wait(PATIENCE_S)
    finally:
        terminal.close()
    _, left, after = bytes(terminal.output).rpartition(b"\x1b[?1049l")
    assert left
    lines = SEQUENCE.sub(b"", after).decode().splitlines()
    assert lines[0].startswith("watched   ")
    sums = list(itertools.takewhile(lambda line: line[:10].strip() in SUMMED_UP, lines))
    assert len(sums) <= 10
    assert all(len(line) <= 80 for line in sums)
    assert below in "\n".join(lines[len(sums) :])
    assert not below or not sums[-1]


@pytest.mark.slow
def test_nothing_is_summed_up_into_a_file(tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = f"exec {sys.executable} -m tui watch --tier kernel --interval 0.2 >{out}"
    terminal = Terminal(("sh", "-c", script), 80, 24)
    try:
        assert terminal.drain(PATIENCE_S, until=b"LIVE") is not None
        terminal.press("q")
        terminal.wait(PATIENCE_S)
    finally:
        assert terminal.close() == 0
    assert out.read_bytes() == b""
