"""Paths, LUNs and ports as sentences that are safe to print."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Mapping

import numpy as np

from collectors.field import Unit
from collectors.graph import Graph, Lun, Path, Port, TargetPort, paths_of, ports_of, targets_of
from collectors.model import Frame, FrameTable
from collectors.paths.groups import GroupBy, lun_name, policy_name, port_name, target_name
from collectors.paths.state import PathLevel, access_mix
from collectors.session.time_format import clock_text
from engine.text import safe_text
from tui.screens.paths.path_table import MOST_NAMED, PathTable
from tui.text.format import MISSING_TEXT, format_quantity


def state_age(age_s: float) -> str:
    """Suffix with the age of the states: " (as of 2 s ago)"; empty if unknown."""
    return "" if math.isnan(age_s) else f" (as of {age_s:.0f} s ago)" if age_s >= 1 else " (as of now)"


@functools.lru_cache(maxsize=4)
def luns_by_key(graph: Graph) -> Mapping[str, Lun]:
    """All LUNs by their keys."""
    return {lun.key: lun for lun in graph.luns}


def summary(board: PathTable, room: int) -> str:
    """Summarise all paths, LUNs and ports, and what is not normal, with the age of the states where `room` has it."""
    graph, layout = board.frame.topology.graph, board.layout
    count = len(layout.states)
    if not any(lun.multipath for lun in graph.luns):
        disks = "1 disk" if count == 1 else f"{count:,} disks"
        each = "the disk is its" if count == 1 else "each disk is its"
        return f"{disks}, no multipath: {each} own only path"
    luns, ports = _lun_and_port_counts(graph)
    found = f"{', '.join(_anomalies(board))} of {count:,} paths, {luns:,} LUNs, {ports:,} HBA ports"
    age = state_age(board.frame.states_age_s)
    return found + age if len(found) + len(age) <= room else found


@functools.lru_cache(maxsize=4)
def _lun_and_port_counts(graph: Graph) -> tuple[int, int]:
    """Both counts, once for a graph: it stays the same for many frames."""
    return len({path.lun for path in graph.paths}), len({path.port for path in graph.paths if path.port})


def _anomalies(board: PathTable) -> Iterator[str]:
    levels = board.layout.levels
    found = {
        "gone": len(board.gone),
        "down": int((levels == PathLevel.DOWN).sum()),
        "marginal": int((levels == PathLevel.MARGINAL).sum()),
        "sick": 0 if board.judged is None else int((~np.isnan(board.judged.sick_times)).sum()),
        "uneven": 0 if board.judged is None else int((~np.isnan(board.judged.uneven_times)).sum()),
        "standby": int((levels == PathLevel.STANDBY).sum()),
    }
    named = [f"{number:,} {word}" for word, number in found.items() if number]
    yield from named or ["none down or sick"]


def row_summary(board: PathTable, row: int) -> str:
    """Describe a row beyond its columns."""
    path = board.path_row(row)
    if path is not None:
        key = board.layout.rows.keys[row]
        return path_summary(board.frame, key, board.verdict_text(row))
    of = board.layout.groups.of[row]
    by, graph = board.layout.groups.by, board.frame.topology.graph
    if by is GroupBy.LUN:
        return lun_summary(board, row, luns_by_key(graph).get(of))
    if by is GroupBy.PORT and of in ports_of(graph):
        return port_summary(board.frame, ports_of(graph)[of])
    paths = len(board.members(row))
    name = board.layout.rows.names[row]
    odd = board.verdict_text(row)
    array = targets_of(graph)[of].array if by is GroupBy.TARGET and of in targets_of(graph) else ""
    parts = [f"{name}: {_counted(paths, 'path')}, {board.state_text(row)}", safe_text(array), odd]
    return "; ".join(filter(None, parts))


def path_summary(frame: Frame, key: str, odd: str) -> str:
    """Describe a path: route, state and verdict."""
    graph = frame.topology.graph
    path = paths_of(graph).get(key)
    if path is None:
        return "this path is gone"
    of = "" if path.lun == path.key else f" of {lun_name(path.lun, frame.topology)}"
    state = ", ".join(filter(None, map(safe_text, (path.state, path.access))))
    text = f"path {safe_text(path.name)}{of}: {state or 'state not known'}"
    if path.marginal:
        text += ", marginal: used only while no other works"
    if path.priority is not None:
        text += f", priority {path.priority}"
    if path.map_state:
        text += f", map {safe_text(path.map_state)}"
    if path.failures:
        text += f", failed {_counted(path.failures, 'time')} so far"
    if odd:
        return f"{text}; {odd.removeprefix(f'path {safe_text(path.name)} ')}"
    return f"{text}; {route(graph, path)}"


def route(graph: Graph, path: Path) -> str:
    """Format the route from the HBA port to the target port."""
    port, target = ports_of(graph).get(path.port), targets_of(graph).get(path.target)
    ends = [port_name(port)] if port else []
    ends += [target_name(target)] if target else []
    return " -> ".join(ends) or "way not known"


def lun_summary(board: PathTable, row: int, lun: Lun | None) -> str:
    """Count the usable paths of a LUN, and name the others."""
    graph, name = board.frame.topology.graph, board.layout.rows.names[row]
    members = [graph.paths[position] for position in graph.paths_of[board.layout.groups.of[row]]]
    text = f"{name}: {sum(path.usable for path in members)} of {_counted(len(members), 'path')} usable"
    if mix := access_mix(members):
        text += f": {mix}"
    if lun is not None and lun.policy:
        text += f", {policy_name(lun)}"
    for gone in board.gone_of(row)[:MOST_NAMED]:
        text += f"; {safe_text(gone.path.name)} gone since {clock_text(gone.since_ns)} ({route(graph, gone.path)})"
    odd = board.verdict_text(row)
    return f"{text}; {odd}" if odd else text


def port_summary(frame: Frame, port: Port) -> str:
    """Describe a port: identity, busy time, and share of its limit."""
    facts = (port_name(port), port.driver, port.address, port.state, port.speed)
    text = "  ".join(filter(None, map(safe_text, facts)))
    hbas = frame.tables.get("hbas")
    row = None if hbas is None else hbas.rows.positions.get(port.key)
    if hbas is None or row is None:
        return f"{text}; no path through it"
    return f"{text}; {busy_text(hbas, row)}"


def target_summary(frame: Frame, target: TargetPort) -> str:
    """Describe a target port: identity and busy time."""
    text = "  ".join(filter(None, map(safe_text, (target.name, target.label, target.transport, target.array))))
    table = frame.tables.get("target_ports")
    row = None if table is None else table.rows.positions.get(target.key)
    if table is None or row is None:
        return f"{text}; no path to it"
    return f"{text}; {busy_text(table, row)}"


def busy_text(hbas: FrameTable, row: int) -> str:
    """Format the busy time of a port: the union of its paths, or its bounds."""
    busy, low, high = (hbas.value(name, row) for name in ("busy_pct", "busy_low_pct", "busy_high_pct"))
    if not np.isnan(busy):
        text = f"busy {busy:.0f} %"
    elif np.isnan(low) or np.isnan(high):
        return "busy not known"
    else:
        text = f"busy between {low:.0f} and {high:.0f} %: its paths may be busy at once"
    limit = format_quantity(hbas.value("limit_pct", row), Unit.PERCENT, 4)
    return text if limit == MISSING_TEXT else f"{text}, {limit} % of its command limit"


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
