"""Runs the fuzzers, each in a process of its own: what a child may not do is the same for all of them."""

from __future__ import annotations

import importlib
import os
import pkgutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MOST_BYTES = 256 << 20
"""Resident memory of a fuzzer, numpy and all."""
_SPARE_S = 120.0
"""How much longer than its time a child may take on a busy machine before it counts as hung."""
_SLOWEST_S = 2.0
"""For each input that is tried however long it takes."""
_CHILD = "import sys; from tests.fuzz.runner import child; sys.exit(child(*sys.argv[1:]))"
_UNLIMITED = 2**31


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one fuzzer."""

    name: str
    tried: int
    most_bytes: int
    failure: str
    """Empty if nothing was found."""


def fuzzer_names() -> list[str]:
    """Modules of this package that are fuzzers."""
    folder = Path(__file__).parent
    modules = {
        module.name: folder / module.name / "__init__.py" if module.ispkg else folder / f"{module.name}.py"
        for module in pkgutil.iter_modules([str(folder)])
    }
    return sorted(name for name, path in modules.items() if "\ndef run(" in path.read_text(encoding="utf-8"))


def refusal_of(name: str) -> str:
    """Why a fuzzer cannot run here; empty if it can."""
    refusal: Callable[[], str] | None = getattr(importlib.import_module(f"tests.fuzz.{name}"), "refusal", None)
    return "" if refusal is None else refusal()


def least_of(name: str, where: str = "LEAST") -> int:
    """How many inputs a fuzzer tries however long that takes; LEAST_IN_TEST is for `make test`."""
    return int(getattr(importlib.import_module(f"tests.fuzz.{name}"), where, 0))


def child(name: str, seed: str, count: str, seconds: str, least: str) -> int:
    """Run one fuzzer in this process; the number of inputs and the memory are the last line of its output."""
    run: Callable[..., int] = importlib.import_module(f"tests.fuzz.{name}").run
    more = {"least": int(least)} if int(least) else {}
    try:
        tried = run(int(seed), int(count), float(seconds), **more)
    except AssertionError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(f"\n{tried} {_peak_bytes()}\n")
    return 0


def _peak_bytes() -> int:
    """Peak resident memory; ru_maxrss would have that of the process that started this one (exec_mmap in fs/exec.c)."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) << 10


def run_fuzzer(name: str, seed: int, count: int | None, seconds: float, least: int = 0) -> Outcome:
    """Run one fuzzer in a child of this process."""
    command = [sys.executable, "-c", _CHILD, name, str(seed), str(count or _UNLIMITED), str(seconds), str(least)]
    longest_s = 2 * seconds + _SPARE_S + least * _SLOWEST_S
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "XDG_STATE_HOME": folder, "XDG_CONFIG_HOME": folder, "XDG_CACHE_HOME": folder}
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                errors="backslashreplace",
                check=False,
                timeout=longest_s,
                env=environment,
                cwd=Path(__file__).parents[2],
            )
        except subprocess.TimeoutExpired:
            return Outcome(name, 0, 0, f"{name}: hung: longer than {longest_s:g} s")
    if done.returncode:
        return Outcome(name, 0, 0, f"{name}: exit {done.returncode}: {done.stderr[-8000:]}")
    tried, peak = map(int, done.stdout.splitlines()[-1].split())
    failure = f"{name}: {peak >> 20} MiB of memory, more than {MOST_BYTES >> 20}" if peak > MOST_BYTES else ""
    if "Traceback" in done.stderr:
        failure = f"{name}: a traceback on stderr: {done.stderr[-8000:]}"
    return Outcome(name, tried, peak, failure)
