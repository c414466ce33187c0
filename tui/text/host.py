"""The host in one line: CPU, memory, pressure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from textual.content import Content

from collectors.model import Frame, FrameTable
from collectors.registry import get_field
from tui.text.format import format_quantity

_FIGURES = (
    ("CPU", ("cpu_user_pct", "cpu_system_pct", "cpu_iowait_pct")),
    ("PSI", ("psi_io_some_pct", "psi_cpu_some_pct", "psi_memory_some_pct")),
    ("mem", ("memory_available_bytes", "dirty_bytes")),
    ("more", ("cpu_irq_pct", "cpu_steal_pct", "psi_io_full_pct", "writeback_bytes", "memory_total_bytes")),
)
_SHORT = {
    "memory_available_bytes": "free",
    "memory_total_bytes": "total",
    "psi_io_some_pct": "io",
    "psi_cpu_some_pct": "cpu",
    "psi_memory_some_pct": "mem",
    "psi_io_full_pct": "io full",
}


def host_line(frame: Frame, width: int) -> Content:
    """CPU, pressure and memory of a frame, as many whole groups as fit; empty without a host table."""
    line = Content("")
    host = frame.tables.get("host")
    if host is None:
        return line
    for title, field_ids in _FIGURES:
        group = Content.assemble((f" {title} ", "bold"), *_parts(host, field_ids))
        if line.cell_length + group.cell_length > width + 1:
            break
        line += group
    return line


def _parts(host: FrameTable, field_ids: Sequence[str]) -> Iterator[tuple[str, str]]:
    for field_id in field_ids:
        field = get_field("host", field_id)
        figure = format_quantity(host.value(field_id, 0), field.unit, 4)
        percent = "%" if field_id.endswith("_pct") and figure != "-" else ""
        yield f"{_SHORT.get(field_id, field.title)} ", "dim"
        yield f"{figure}{percent} ", ""
