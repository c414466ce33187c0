"""Nodes of the device graph in sentences, safe to print."""

from __future__ import annotations

from collectors.heat import verdict
from collectors.kernel.hotplug_changes import size_text
from collectors.model import Frame
from collectors.paths.verdict import judge_paths, odd_words
from collectors.topology.branches import Node, NodeKind
from tui.history.subjects import row_of
from tui.paths.text import path_told, port_told, ports_by_key, targets_by_key


def node_told(frame: Frame, node: Node) -> str:
    """Say about one node what its columns do not."""
    graph = frame.topology.graph
    if node.kind is NodeKind.PORT and node.of in ports_by_key(graph):
        return port_told(frame, ports_by_key(graph)[node.of])
    if node.kind is NodeKind.TARGET:
        target = targets_by_key(graph).get(node.of.partition(" -> ")[2])
        array = f" of {target.array}" if target is not None and target.array else ""
        return f"target port {node.name}{array}"
    if node.kind is NodeKind.PATH:
        row, judged = row_of(node.of, frame.tables.get("paths")), judge_paths(frame)
        odd = "" if row is None or judged is None else odd_words(frame, judged, row)
        return path_told(frame, node.of, odd)
    row = row_of(node.of, frame.tables.get("disks"))
    size = _size(frame, node.of)
    if row is not None and node.kind is not NodeKind.MOUNT:
        return f"{verdict(frame, row)}{size}"
    return f"{node.name}{size}"


def _size(frame: Frame, key: str) -> str:
    device = frame.topology.devices.get(key)
    size_bytes = None if device is None else device.size_bytes
    return "" if size_bytes is None else f"; {size_text(size_bytes)}"
