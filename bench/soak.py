"""`make soak`: live data, a load, random keys and resizes for minutes; then ends by a lost terminal.

Measured: delay from key to screen during that, growth of memory, and the time to the end after SIGHUP or a closed
terminal. Exits with 1 if a bound is exceeded.
"""

from __future__ import annotations

import argparse
import os
import re
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from bench.operator import KEYS_PER_S, Operator
from bench.shown_text import BEING_TYPED, FILTER_PROMPT, PALETTE_PROMPT, PROMPTS, ShownText
from bench.terminal import Terminal

KEY_MS = 100.0
"""From a key to the screen, 99th percentile."""
END_S = 2.0
SLOPE_KIB_PER_MIN = 256.0
"""Growth of memory that is ignored: the size of one chart's history."""
STALL_S = 5.0
"""A key without effect for this time is a failure, not a delay."""
WARM_UP_SHARE = 0.4
"""Warm-up share of the time, while histories fill: memory is not checked. They are full after some ten minutes."""
_RESTS_APART_S, _REST_S = 10.0, 1.5
"""Memory is read after a moment without keys, when garbage in cycles was collected: what stays is the question."""
INTERVAL_S = 0.1
"""At which shortened histories (600 samples) are full within the warm-up of 25 minutes; keys delay samples."""
_STORM_S = 0.8
_ESCAPE, _PALETTE, _PATHS = "\x1b", "\x10", "5"
_SEEN_AT = ((60, 220), (20, 60))
"""Columns and lines needed to show a typed word."""
_SOONER = "(" * 4
"""Undoes what random keys did to the sampling interval: histories would not be full before the soak ends."""
_MOST_TRIES = 5
_PROMPT_S = 3.0
"""Time for a prompt to appear, before it is asked for again."""


@dataclass
class Findings:
    """Results of a soak."""

    key_ms: list[float] = field(default_factory=list)
    prompt_ms: list[float] = field(default_factory=list)
    """From a key to the prompt that it opens."""
    later_prompts: int = 0
    """Prompts that appeared at a later try."""
    lost_words: int = 0
    """Words that were not shown at a prompt that was."""
    memory_kib: list[list[tuple[float, float]]] = field(default_factory=list)
    """(seconds, KiB) of resident memory of each program."""
    ends_s: list[float] = field(default_factory=list)
    late_ends: int = 0
    faults: list[str] = field(default_factory=list)
    restarts: int = 0


class Soak:
    """One program under an operator; restarted if a random key quit it."""

    def __init__(self, folder: Path, seed: int, interval_s: float = INTERVAL_S) -> None:
        self._folder = folder
        self._seed = seed
        self._interval_s = interval_s
        self.findings = Findings()

    def run(self, minutes: float) -> None:
        """Storm, probe, storm, until the time is over."""
        started_s = rested_s = time.monotonic()
        terminal, operator = self._start()
        self.findings.memory_kib.append([])
        while time.monotonic() - started_s < minutes * 60:
            try:
                operator.storm(_STORM_S)
                self._probe(terminal, operator)
                if time.monotonic() - rested_s >= _RESTS_APART_S:
                    terminal.drain(_REST_S)
                    rested_s = time.monotonic()
                    self.findings.memory_kib[-1].append((rested_s - started_s, resident_kib(terminal.worker)))
            except OSError:
                if not self._restart(terminal, operator):
                    return
                terminal, operator = self._start()
                self.findings.memory_kib.append([])
        terminal.hang_up()
        self._judge_end(terminal, terminal.gone_after_s(STALL_S))

    def endings(self, count: int) -> None:
        """End programs during a storm, alternately by SIGHUP and by closing the terminal."""
        for number in range(count):
            terminal, operator = self._start()
            with suppress(OSError):
                operator.storm(0.5 + number % 5 * 0.2)
            if not terminal.alive():
                self._restart(terminal, operator)
                continue
            if number % 2:
                os.kill(terminal.pid, signal.SIGHUP)
            else:
                terminal.hang_up()
            self._judge_end(terminal, terminal.gone_after_s(STALL_S))

    def _start(self) -> tuple[Terminal, Operator]:
        self._seed += 1
        session = self._folder / "soak.luns"
        command = [sys.executable, "-m", "bench.short_histories", "run", "--rate=500", "--size=16m"]
        command += [f"--interval={self._interval_s:g}", f"--record={session}", "--overwrite"]
        home = {"HOME": str(self._folder), "XDG_CONFIG_HOME": "", "XDG_CACHE_HOME": "", "LUNSCOPE_SCRATCH_DIR": ""}
        terminal = Terminal(command, 120, 40, environment=home)
        if terminal.drain(60.0, until=b"RUNNING") is None:
            self.findings.faults.append(f"seed {self._seed}: no running load after 60 s: {tail(terminal)}")
        return terminal, Operator(terminal, self._seed)

    def _probe(self, terminal: Terminal, operator: Operator) -> None:
        """Type a word where it is echoed; a prompt that is on the screen must show it.

        Other keys before it may have left a dialog that is only about to open or to close: then the prompt is asked
        for again.
        """
        operator.resize_within(*_SEEN_AT)
        operator.storm(0.4, resizes=False)
        for tried in range(_MOST_TRIES):
            shown, is_open = self._prompt(terminal, operator)
            if is_open and self._type_word(terminal, operator, shown):
                self.findings.later_prompts += tried > 0
                return
        keys = operator.recent()
        self.findings.faults.append(f"no prompt in {_MOST_TRIES} tries at {operator.size} after {keys}: {shown.text()}")

    def _prompt(self, terminal: Terminal, operator: Operator) -> tuple[ShownText, bool]:
        """Open the palette or the filter of a table; returns what is shown, and whether that is a new prompt."""
        operator.resize_within(*_SEEN_AT)  # all is drawn anew
        shown = ShownText(*operator.size)
        terminal.output.clear()
        for _ in range(3):
            operator.type(_ESCAPE)
            terminal.drain(0.15, until=shown.feed)
        if shown.shows(PROMPTS):
            return shown, False
        where, prompt = ((_PALETTE,), PALETTE_PROMPT) if operator.chance() else ((_PATHS, "/"), FILTER_PROMPT)
        for key in where[:-1]:
            operator.type(key)
            terminal.drain(0.15, until=shown.feed)
        pressed_ns = operator.type(where[-1])
        seen_ns = terminal.drain(_PROMPT_S, until=lambda chunk: shown.feed(chunk) or shown.shows(prompt))
        if seen_ns is not None:
            self.findings.prompt_ms.append((seen_ns - pressed_ns) / 1e6)
        return shown, seen_ns is not None

    def _type_word(self, terminal: Terminal, operator: Operator, shown: ShownText) -> bool:
        """Measure the delay of the last letter; returns false if the prompt closed: an earlier key came after it."""
        word = operator.word()
        terminal.output.clear()
        pressed_ns = operator.type(word)
        shown.feed(bytes(terminal.output))  # the letters before the last
        seen_ns = terminal.drain(STALL_S, until=lambda chunk: shown.feed(chunk) or shown.shows(word))
        if seen_ns is not None:
            self.findings.key_ms.append((seen_ns - pressed_ns) / 1e6)
            operator.type(_ESCAPE)
            terminal.drain(0.15)  # with a key right after it, it is Alt and that key
            operator.type(_SOONER)
            return True
        if not shown.shows(BEING_TYPED):
            return False
        self.findings.lost_words += 1
        at = f"{operator.size} after {operator.recent()}"
        self.findings.faults.append(f"{word} not shown within {STALL_S:g} s at {at}: {shown.text()}")
        return True

    def _restart(self, terminal: Terminal, operator: Operator) -> bool:
        """Check a program that ended; returns whether keys quit it."""
        terminal.drain(1.0)
        code = terminal.close()
        self.findings.restarts += 1
        if code != 0:
            text = f"ended with {code} at {operator.size} after {operator.recent()}: {tail(terminal)}"
            self.findings.faults.append(text + self._crashes())
        return code == 0

    def _crashes(self) -> str:
        """Return the reports of crashes, which are removed with the folder."""
        reports = sorted(self._folder.glob(".local/state/lunscope/crashes/*"))
        return "".join(f"\n{report.name}:\n{report.read_text()}" for report in reports)

    def _judge_end(self, terminal: Terminal, seconds: float | None) -> None:
        if seconds is None:
            self.findings.late_ends += 1
            threads = threads_of(terminal.worker)
            self.findings.faults.append(f"alive {STALL_S:g} s after its terminal: {threads}")
            os.kill(terminal.pid, signal.SIGKILL)
        else:
            self.findings.ends_s.append(seconds)
            self.findings.late_ends += seconds > END_S
        code = terminal.close()
        if seconds is not None and code != 128 + signal.SIGHUP:
            self.findings.faults.append(f"ended with {code} after SIGHUP: {tail(terminal)}")


def resident_kib(pid: int) -> float:
    """Resident memory of a process."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1024


def threads_of(pid: int) -> str:
    """Kernel wait channel of each thread of a process."""
    found = []
    for task in sorted(Path(f"/proc/{pid}/task").iterdir()):
        with suppress(OSError):
            state = (task / "stat").read_text().rpartition(")")[2].split()[0]
            found.append(f"{(task / 'comm').read_text().strip()} {state} {(task / 'wchan').read_text()}")
    return ", ".join(found)


def slope_kib_per_min(points: list[tuple[float, float]]) -> float:
    """Growth per minute after the warm-up, between the lowest values of its first and second half."""
    late = points[int(len(points) * WARM_UP_SHARE) :]
    half = len(late) // 2
    if not half:
        return float("nan")
    (earlier_s, before), (later_s, after) = (
        min(part, key=lambda point: point[1]) for part in (late[:half], late[half:])
    )
    return (after - before) / (later_s - earlier_s) * 60


def _median_and_p99(delays_ms: Sequence[float]) -> tuple[float, float]:
    ranked = sorted(delays_ms)
    if not ranked:
        return float("nan"), float("nan")
    return statistics.median(ranked), ranked[min(len(ranked) - 1, int(len(ranked) * 0.99))]


def tail(terminal: Terminal) -> str:
    """Return the last output of a program, without escape sequences."""
    text = re.sub(r"\x1b\[[0-?]*[ -/]*[@-~]", "", terminal.output[-6000:].decode(errors="replace"))
    return " ".join(text.split())[-600:]


def report(found: Findings, minutes: float) -> bool:
    """Print the table; returns whether all bounds are kept."""
    median, p99 = _median_and_p99(found.key_ms)
    _, prompt_p99 = _median_and_p99(found.prompt_ms)
    words = len(found.key_ms) + found.lost_words
    longest = max(found.memory_kib, key=len, default=[])
    slope = slope_kib_per_min(longest)
    slowest_end = max(found.ends_s, default=float("nan"))
    highest = max((kib for _, kib in longest), default=float("nan")) / 1024
    rows = [
        ("key to screen, median", f"{median:.0f} ms of {len(found.key_ms)}", "", True),
        ("key to screen, p99", f"{p99:.0f} ms", f"<= {KEY_MS:g} ms", p99 <= KEY_MS),
        ("key to a prompt, p99", f"{prompt_p99:.0f} ms", "", True),
        ("prompts at a later try", f"{found.later_prompts}", "<= 10 %", found.later_prompts <= 0.1 * words),
        ("words lost at a prompt", f"{found.lost_words} of {words}", "0", found.lost_words == 0),
        ("memory, highest", f"{highest:.0f} MiB", "", True),
        ("memory, growth", f"{slope:.0f} KiB/min", f"<= {SLOPE_KIB_PER_MIN:g}", slope <= SLOPE_KIB_PER_MIN),
        ("ends within 2 s", f"{len(found.ends_s)}, slowest {slowest_end:.2f} s", "all", found.late_ends == 0),
        ("quit by a key, started again", f"{found.restarts}", "", True),
        ("faults", f"{len(found.faults)}", "0", not found.faults),
    ]
    print(f"{minutes:g} min, {KEYS_PER_S} keys/s")
    for name, figure, bound, kept in rows:
        print(f"{name:32}{figure:28}{bound:14}{'' if kept else 'BROKEN'}")
    for fault in found.faults:
        print(f"fault: {fault}")
    return all(kept for *_, kept in rows)


def main() -> None:
    """Run the soak."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long keys are pressed")
    parser.add_argument("--endings", type=int, default=50, help="how many programs lose their terminal afterwards")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--interval", type=float, default=INTERVAL_S, help="seconds between samples")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        os.chdir(folder)  # random keys save pictures and job files where the program was started
        soak = Soak(folder, arguments.seed, arguments.interval)
        soak.run(arguments.minutes)
        soak.endings(arguments.endings)
        sys.exit(not report(soak.findings, arguments.minutes))


if __name__ == "__main__":
    main()
