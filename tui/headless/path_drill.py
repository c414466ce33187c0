"""A drill of paths without a screen: the command beside it, and what it shows as text and JSON."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator, Sequence
from typing import IO, Any

from msgspec import Struct

from collectors.reports.documents.content import DocumentTable, Paragraph, Section
from engine.drill.measure import DrillPhase, PhaseFigures
from engine.drill.paths import DrilledLun, HostPaths
from engine.drill.run import DrillResult, DrillRun, require_answers
from engine.errors import LunscopeError
from engine.hostfs.kernel_files import Roots
from engine.text import safe_text
from engine.tune.disks import Disk
from engine.tune.journal import Journal
from engine.tune.record import names_text
from engine.tune.scope import Host, scopes_or_all
from engine.tune.tree import KernelTree
from engine.tune.tunable import Target
from tui.headless.signals import EndingSignals
from tui.process.standard_streams import say

_POLL_S = 0.1


class ShownDrill(Struct, frozen=True):
    """The result of a drill in both forms, and the exit code."""

    section: Section
    document: dict[str, Any]
    status: int


def list_paths(host: Host, roots: Roots, scopes: Sequence[str]) -> Section:
    """Make a table of paths: their LUNs, and whether each may be taken offline.

    Without a scope disks of kinds that are never a path, as most of a host may be, are only counted.
    """
    paths = HostPaths(host, roots)
    chosen = paths.chosen(scopes_or_all(scopes))
    shown = chosen if scopes else [disk for disk in chosen if paths.may_be_path(disk)]
    left_out = len(chosen) - len(shown)
    counted = f"{left_out:,} other disk{'' if left_out == 1 else 's'}, neither SCSI nor NVMe, nor in a multipath map"
    said = (Paragraph(f"not listed: {counted}"),) if left_out else ()
    return Section("", ((_listed(paths, shown), *said) if shown else said))


def _listed(paths: HostPaths, disks: Sequence[Disk]) -> DocumentTable:
    rows = []
    for disk in disks:
        luns = ", ".join(safe_text(lun.name) for lun in paths.luns_of(disk))
        rows.append((safe_text(disk.name), luns, paths.refusal(disk) or paths.last_of(disk) or "may be taken offline"))
    return _table(("PATH", "LUN", ""), rows)


def plan_lines(tree: KernelTree, roots: Roots, scopes: Sequence[str]) -> Section:
    """Say what a drill would take offline, and what its LUNs keep.

    Raises:
        LunscopeError: it is refused.
    """
    drill = HostPaths(Host(tree), roots).plan(scopes)
    require_answers(drill.luns)
    rows = [(safe_text(lun.name), _names(lun.taken), _names(lun.left)) for lun in drill.luns]
    return Section("", (_table(("LUN", "OFFLINE", "LEFT"), rows),))


def begin_drill(
    tree: KernelTree,
    roots: Roots,
    scopes: Sequence[str],
    arguments: Sequence[str],
    *,
    offline_s: float,
    around_s: float,
    output: IO[str] | None,
) -> ShownDrill:
    """Run a drill, with a command beside it if one is given, whose output goes to `output`, ours by default.

    Raises:
        LunscopeError: it is refused or failed; all paths are as before, or the message says which are not.
    """

    def look() -> HostPaths:
        return HostPaths(Host(tree), roots)

    look().plan(scopes)
    with EndingSignals() as signals:
        beside = _Beside(arguments, signals, output)
        try:
            result = DrillRun(tree, look, Journal(), beside.wait, say).run(
                scopes, offline_s, around_s, awaits_load=bool(arguments)
            )
        except BaseException:
            beside.end()
            raise
        for problem in result.problems:
            say(problem)
        status = beside.end()
        code = 1 if result.problems or result.lost else status
        return ShownDrill(_section(result), _document(result, status if arguments else None), code)


class _Beside:
    """The command that runs beside a drill, and the signals that end both."""

    def __init__(self, arguments: Sequence[str], signals: EndingSignals, output: IO[str] | None) -> None:
        self._signals, self._name = signals, arguments[0] if arguments else ""
        self._is_told = False
        try:
            self._process = subprocess.Popen(arguments, stdout=output) if arguments else None
        except OSError as error:
            raise LunscopeError(f"{safe_text(arguments[0])}: {error.strerror}: no path was taken offline") from None

    def wait(self, timeout_s: float) -> str:
        """Wait for a signal or the end of the command; returns which it was, empty without any."""
        ending = self._signals.wait(timeout_s)
        if ending is not None:
            return f"ended by {ending.name}"
        if self._process is not None and self._process.poll() is not None:
            return f"{safe_text(self._name)} has ended"
        return ""

    def end(self) -> int:
        """Wait for the end of the command, and return the exit code of both; a signal is passed on."""
        while self._process is not None:
            ending = self._signals.wait(0)
            if ending is not None and not self._is_told:
                self._is_told = True
                if ending is not signal.SIGINT:
                    self._process.send_signal(ending)
            try:
                code = self._process.wait(_POLL_S)
            except subprocess.TimeoutExpired:
                continue
            return code if code >= 0 else 128 - code
        ending = self._signals.wait(0)
        return 0 if ending is None else 128 + ending


def _section(result: DrillResult) -> Section:
    rows = [row for lun in result.drill.luns for row in _rows(result, lun)]
    head = ("LUN", "PATHS", "", "s", "IOPS", "of before", "MB/s", "pause ms")
    table = DocumentTable("", tuple((title, "") for title in head), tuple(rows), texts=3)
    failed = [f"{safe_text(name)} {count:,}" for name, count in result.path_errors.items() if count]
    counted = ", ".join(failed) or "none"
    said = [
        "pause: the longest time, at most, in which nothing completed though I/Os were outstanding",
        f"offline were {_names([write.target for write in result.drill.plan.writes])}; I/Os that failed on them: "
        f"{counted if result.path_errors else 'not counted here'}",
    ]
    if result.ending:
        said.append(f"the paths came back before their time: {result.ending}")
    return Section("", (table, *map(Paragraph, said)))


def _rows(result: DrillResult, lun: DrilledLun) -> Iterator[tuple[str, ...]]:
    every = len(lun.left) + len(lun.taken)
    before = result.of(lun, DrillPhase.BEFORE)
    for phase in DrillPhase:
        paths = f"{len(lun.left)} of {every}" if phase is DrillPhase.OFFLINE else f"{every}"
        name = safe_text(lun.name) if phase is DrillPhase.BEFORE else ""
        found = result.of(lun, phase)
        if found is None:
            yield name, paths, phase, *("-" for _ in range(5))
            continue
        share = f"{found.iops / before.iops:.2f}x" if before is not None and before.ios else "-"
        pause = "-" if found.pause_s is None else f"{found.pause_s * 1e3:,.0f}"
        speed = f"{found.bytes_per_s / 1e6:,.1f}"
        yield name, paths, phase, f"{found.duration_s:.1f}", f"{found.iops:,.0f}", share, speed, pause


def _document(result: DrillResult, command_status: int | None) -> dict[str, Any]:
    """Build the JSON document lunscope.path-drill/1."""
    return {
        "schema": "lunscope.path-drill/1",
        "offline": [
            {
                "path": safe_text(write.target.name),
                "by": write.tunable.id.removeprefix("path."),
                "failed_ios": result.path_errors.get(write.target.name),
            }
            for write in result.drill.plan.writes
        ],
        "luns": [
            {
                "name": safe_text(lun.name),
                "paths": len(lun.left) + len(lun.taken),
                "paths_left": len(lun.left),
                **{str(phase): _figures(result.of(lun, phase)) for phase in DrillPhase},
            }
            for lun in result.drill.luns
        ],
        "ended_early": result.ending or None,
        "problems": list(result.problems),
        "command_status": command_status,
    }


def _figures(found: PhaseFigures | None) -> dict[str, Any] | None:
    if found is None:
        return None
    return {
        "duration_s": found.duration_s,
        "ios": found.ios,
        "iops": found.iops,
        "bytes_per_s": found.bytes_per_s,
        "pause_ms": None if found.pause_s is None else found.pause_s * 1e3,
    }


def _names(named: Sequence[Disk | Target]) -> str:
    return names_text([each.name for each in named], most=8)


def _table(titles: Sequence[str], rows: Sequence[tuple[str, ...]]) -> DocumentTable:
    return DocumentTable("", tuple((title, "") for title in titles), tuple(rows), texts=len(titles))
