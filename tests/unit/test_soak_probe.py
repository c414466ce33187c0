"""The soak finds a word that a program loses, and asks again for a prompt that a late dialog kept away."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import bench.soak
from bench.operator import Operator
from bench.soak import Soak
from bench.terminal import Terminal

PROGRAM = """
import os, signal, sys, termios, tty
tty.setraw(0)
fault = sys.argv[1]
prompts, letters, typed = 0, 0, None
def show(text):
    os.write(1, b"\\x1b[2;1H\\x1b[2K" + text)
def prompt():
    show({b"": b"", b"\\x10": b"type part of a name  Enter: run   Esc: cancel", b"/": b"/_  3 of 3"}[opener])
opener = b""
def redraw(*_):
    os.write(1, b"\\x1b[2J")
    prompt()
signal.signal(signal.SIGWINCH, redraw)
while True:
    try:
        key = os.read(0, 1)
    except InterruptedError:
        continue
    if key == b"\\x1b":
        opener, letters, typed = b"", 0, None
        prompt()
    elif opener and key.isalpha():
        letters += 1
        if fault == "closes" and prompts == 1:
            opener = b""
            prompt()
        elif fault != "loses" or letters != 4:
            typed = (typed or b"") + key
            show(b"/" + typed + b"_  Enter: run   Esc: cancel")
    elif key in (b"\\x10", b"/") and not opener:
        prompts += 1
        if fault != "late" or prompts % 2 == 0:
            opener = key
            prompt()
"""


class Typist(Operator):
    """An operator without storms, whose keys and sizes are as random."""

    def storm(self, seconds: float, *, resizes: bool = True) -> None:
        """Press nothing."""


def probed(folder: Path, fault: str, times: int = 1) -> bench.soak.Findings:
    terminal = Terminal([sys.executable, "-c", PROGRAM, fault], 100, 40)
    soak = Soak(folder, 1)
    try:
        terminal.drain(0.3)
        for _ in range(times):
            soak._probe(terminal, Typist(terminal, 7))
    finally:
        terminal.close()
    return soak.findings


def test_a_word_at_its_prompt_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.soak, "_PROMPT_S", 60.0)
    monkeypatch.setattr(bench.soak, "STALL_S", 60.0)
    found = probed(tmp_path, "none")
    assert (len(found.key_ms), found.lost_words, found.later_prompts, found.faults) == (1, 0, 0, [])


def test_a_word_with_a_letter_too_few_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.soak, "_PROMPT_S", 60.0)
    monkeypatch.setattr(bench.soak, "STALL_S", 0.5)
    found = probed(tmp_path, "loses")
    assert (len(found.key_ms), found.lost_words) == (0, 1)
    assert "not shown within 0.5 s" in found.faults[0]


def test_a_prompt_that_did_not_come_is_asked_for_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.soak, "_PROMPT_S", 1.0)
    monkeypatch.setattr(bench.soak, "STALL_S", 60.0)
    found = probed(tmp_path, "late")
    assert (len(found.key_ms), found.lost_words, found.later_prompts) == (1, 0, 1)


def test_a_prompt_that_closes_by_an_earlier_key_is_asked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bench.soak, "_PROMPT_S", 60.0)
    monkeypatch.setattr(bench.soak, "STALL_S", 1.0)
    found = probed(tmp_path, "closes")
    assert (len(found.key_ms), found.lost_words, found.later_prompts, found.faults) == (1, 0, 1, [])


def test_a_program_without_a_prompt_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench.soak, "_PROMPT_S", 0.1)
    monkeypatch.setattr(bench.soak, "_MOST_TRIES", 2)
    terminal = Terminal(["sleep", "60"], 100, 40)
    soak = Soak(tmp_path, 1)
    soak._probe(terminal, Typist(terminal, 7))
    terminal.close()
    assert soak.findings.faults[0].startswith("no prompt in 2 tries")
