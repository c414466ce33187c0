"""The field registry: every figure that can be shown, sorted, charted or exported, declared once."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from collectors.model import Tier


class Unit(StrEnum):
    """Unit a field's value is in; ids carry it as a suffix."""

    PER_SECOND = "1/s"
    BYTES_PER_SECOND = "B/s"
    MILLISECONDS = "ms"
    PERCENT = "%"
    COUNT = ""
    BYTES = "B"


@dataclass(frozen=True, slots=True)
class Field:
    """One figure: where it stands, what it is called, and what a person needs to know to trust it."""

    id: str
    table: str
    title: str
    unit: Unit
    help: str
    tier: Tier = Tier.KERNEL
    """Tier where the frame gives none for the row."""


def _disk(id_: str, title: str, unit: Unit, help_: str) -> Field:
    return Field(id_, "disks", title, unit, help_)


def _host(id_: str, title: str, unit: Unit, help_: str) -> Field:
    return Field(id_, "host", title, unit, help_)


def _process(id_: str, title: str, unit: Unit, help_: str) -> Field:
    return Field(id_, "processes", title, unit, help_)


def _load(id_: str, title: str, unit: Unit, help_: str) -> tuple[Field, Field]:
    return (
        Field(id_, "load", title, unit, help_, Tier.EXACT),
        Field(id_, "load_total", title, unit, f"{help_} All targets together.", Tier.EXACT),
    )


def _load_path(id_: str, title: str, unit: Unit, help_: str) -> Field:
    return Field(id_, "load_paths", title, unit, help_, Tier.EXACT)


def _layout(id_: str, title: str, unit: Unit, help_: str) -> tuple[Field, Field]:
    return (
        _load_path(id_, title, unit, f"I/Os of the engine over one path of a LUN. {help_}"),
        Field(id_, "load_logical", title, unit, f"I/Os before they were cut or copied. {help_}", Tier.EXACT),
    )


_DISKS = (
    _disk(
        "heat",
        "Heat",
        Unit.COUNT,
        "How hot, 0 to 100: busy % x (0.4 + 0.3 x queue share of await + 0.3 x share of the I/O time of all disks).",
    ),
    _disk("iops", "IOPS", Unit.PER_SECOND, "Completed reads and writes per second."),
    _disk("reads_per_s", "r/s", Unit.PER_SECOND, "Completed reads per second."),
    _disk("writes_per_s", "w/s", Unit.PER_SECOND, "Completed writes per second."),
    _disk("bytes_per_s", "Thr", Unit.BYTES_PER_SECOND, "Bytes read and written per second."),
    _disk("read_bytes_per_s", "rB/s", Unit.BYTES_PER_SECOND, "Bytes read per second."),
    _disk("write_bytes_per_s", "wB/s", Unit.BYTES_PER_SECOND, "Bytes written per second."),
    _disk("discards_per_s", "d/s", Unit.PER_SECOND, "Completed discards per second."),
    _disk("flushes_per_s", "f/s", Unit.PER_SECOND, "Completed flushes per second."),
    _disk("read_merges_per_s", "rrqm/s", Unit.PER_SECOND, "Reads merged into another request per second."),
    _disk("write_merges_per_s", "wrqm/s", Unit.PER_SECOND, "Writes merged into another request per second."),
    _disk(
        "await_ms",
        "await",
        Unit.MILLISECONDS,
        "Queue plus service time per read or write; the interval needs 2 ms of it.",
    ),
    _disk("read_await_ms", "r await", Unit.MILLISECONDS, "Queue plus service time per read."),
    _disk("write_await_ms", "w await", Unit.MILLISECONDS, "Queue plus service time per write."),
    _disk(
        "queue_ms",
        "Q",
        Unit.MILLISECONDS,
        "Queue time per I/O: from accounted start to the driver. Sampled: 0 where within 20 us + 20 % of await.",
    ),
    _disk(
        "tag_wait_ms",
        "Tag",
        Unit.MILLISECONDS,
        "Wait per I/O for a free tag, before Q begins; watched while a queue is full, or when asked for. Exact only.",
    ),
    _disk(
        "service_ms",
        "S",
        Unit.MILLISECONDS,
        "Service time per I/O: from the driver to completion. Sampled: about +-20 %.",
    ),
    _disk(
        "in_flight",
        "In fl",
        Unit.COUNT,
        "Outstanding I/Os, averaged over the interval (Little's law); in a stall, those held.",
    ),
    _disk("in_flight_peak", "Peak fl", Unit.COUNT, "Most outstanding I/Os seen at once by the in-flight sampler."),
    _disk(
        "busy_pct",
        "Busy",
        Unit.PERCENT,
        "Share of the interval with at least one I/O outstanding. Kernel ticks: only near 0 and 100 to be trusted.",
    ),
    _disk("read_bytes_per_io", "r size", Unit.BYTES, "Mean size of a read."),
    _disk("write_bytes_per_io", "w size", Unit.BYTES, "Mean size of a write."),
    _disk("p50_ms", "p50", Unit.MILLISECONDS, "Service time that half of the I/Os stayed within. Exact only."),
    _disk("p99_ms", "p99", Unit.MILLISECONDS, "Service time that 99 % of the I/Os stayed within. Exact only."),
    _disk(
        "p999_ms",
        "p99.9",
        Unit.MILLISECONDS,
        "Service time that 99.9 % of the I/Os stayed within; needs 1,000 I/Os in the interval. Exact only.",
    ),
    _disk("service_max_ms", "S max", Unit.MILLISECONDS, "The largest service time in the interval. Exact only."),
    _disk("queue_p99_ms", "Q p99", Unit.MILLISECONDS, "Queue time that 99 % of the I/Os stayed within. Exact only."),
    _disk("queue_max_ms", "Q max", Unit.MILLISECONDS, "The largest queue time in the interval. Exact only."),
    _disk(
        "max_ms", "Peak", Unit.MILLISECONDS, "Peak latency: the largest Q + S of one I/O in the interval. Exact only."
    ),
)

_NEW = "as many as came since the last look at the counters"
_BENIGN = "SCSI counts harmless ones too, such as those of probing."

_OF_PATHS = (
    Field(
        "lun_share_pct",
        "paths",
        "Share",
        Unit.PERCENT,
        "This path's part of the reads and writes that all paths of its LUN completed.",
    ),
    Field("queue_limit", "paths", "Limit", Unit.COUNT, "Outstanding commands the path admits (queue_depth)."),
    Field("limit_pct", "paths", "Of lim", Unit.PERCENT, "Outstanding I/Os as a share of what the path admits."),
    Field("new_errors", "paths", "+err", Unit.COUNT, f"Commands that did not end well, {_NEW}. {_BENIGN}"),
    Field("new_timeouts", "paths", "+tmo", Unit.COUNT, f"Commands that timed out, {_NEW}."),
    Field("new_retries", "paths", "+retry", Unit.COUNT, f"Commands sent again, {_NEW} (NVMe, from 7.2)."),
    Field("new_failovers", "paths", "+fail", Unit.COUNT, f"I/Os moved to another path, {_NEW} (NVMe, from 7.2)."),
    Field("errors", "paths", "errors", Unit.COUNT, f"Commands that did not end well since the path came. {_BENIGN}"),
    Field("timeouts", "paths", "timeouts", Unit.COUNT, "Commands that timed out since the path came."),
)

_PATHS = (
    *(
        Field(field.id, "paths", field.title, field.unit, field.help, field.tier)
        for field in _DISKS
        if field.id != "heat"
    ),
    *_OF_PATHS,
)

_PORT_HELP = {
    "busy_pct": "Share of the interval with at least one I/O outstanding on any path of the port; never a sum.",
    "queue_ms": "Queue time per I/O of all paths of the port, where the in-flight sampler saw nine tenths of them.",
    "service_ms": "Service time per I/O, likewise.",
    "in_flight": "Outstanding I/Os of all paths of the port, averaged over the interval (Little's law).",
}

_OF_PORTS = (
    Field(
        "busy_low_pct",
        "hbas",
        "Busy>=",
        Unit.PERCENT,
        "Least the port can have been busy: as much as the busiest of its paths.",
    ),
    Field(
        "busy_high_pct",
        "hbas",
        "Busy<=",
        Unit.PERCENT,
        "Most the port can have been busy: all of its paths one after the other, at most 100 %.",
    ),
    Field("paths", "hbas", "Paths", Unit.COUNT, "Paths through this port."),
    Field("queue_limit", "hbas", "Limit", Unit.COUNT, "Outstanding commands the port admits (can_queue)."),
    Field("limit_pct", "hbas", "Of lim", Unit.PERCENT, "Outstanding I/Os as a share of what the port admits."),
    Field("new_errors", "hbas", "+err", Unit.COUNT, f"Commands of all paths that did not end well, {_NEW}. {_BENIGN}"),
    Field("new_timeouts", "hbas", "+tmo", Unit.COUNT, f"Commands of all paths that timed out, {_NEW}."),
    Field("new_retries", "hbas", "+retry", Unit.COUNT, f"Commands of all paths sent again, {_NEW}."),
    Field("new_command_errors", "hbas", "+cerr", Unit.COUNT, f"Errors of the controller's commands, {_NEW} (NVMe)."),
    Field("new_link_errors", "hbas", "+link", Unit.COUNT, f"Times the link was lost or reset, {_NEW} (FC, SAS)."),
    Field("new_frame_errors", "hbas", "+frame", Unit.COUNT, f"Damaged or dropped frames and words, {_NEW} (FC, SAS)."),
    Field("new_resets", "hbas", "+reset", Unit.COUNT, f"Resets of the controller, {_NEW} (NVMe)."),
    Field("new_reconnects", "hbas", "+reconn", Unit.COUNT, f"Reconnects of the controller, {_NEW} (NVMe fabrics)."),
)

_NOT_OF_PORTS = frozenset({"heat", "read_merges_per_s", "write_merges_per_s"})

_HBAS = (
    *(
        Field(field.id, "hbas", field.title, field.unit, _PORT_HELP.get(field.id, field.help), field.tier)
        for field in _DISKS
        if field.id not in _NOT_OF_PORTS
    ),
    *_OF_PORTS,
)


def _tape(id_: str, title: str, unit: Unit, help_: str) -> Field:
    return Field(id_, "tapes", title, unit, help_)


_TAPES = (
    _tape("iops", "IOPS", Unit.PER_SECOND, "Completed reads and writes per second."),
    _tape("reads_per_s", "r/s", Unit.PER_SECOND, "Completed reads per second."),
    _tape("writes_per_s", "w/s", Unit.PER_SECOND, "Completed writes per second."),
    _tape("others_per_s", "o/s", Unit.PER_SECOND, "Other commands per second: rewind, space, write filemarks."),
    _tape("bytes_per_s", "Thr", Unit.BYTES_PER_SECOND, "Bytes read and written per second."),
    _tape("read_bytes_per_s", "rB/s", Unit.BYTES_PER_SECOND, "Bytes read per second."),
    _tape("write_bytes_per_s", "wB/s", Unit.BYTES_PER_SECOND, "Bytes written per second."),
    _tape("await_ms", "await", Unit.MILLISECONDS, "Time per read or write; the kernel does not split it."),
    _tape("read_await_ms", "r await", Unit.MILLISECONDS, "Time per read."),
    _tape("write_await_ms", "w await", Unit.MILLISECONDS, "Time per write."),
    _tape("in_flight", "In fl", Unit.COUNT, "Outstanding commands at the end of the interval."),
    _tape(
        "busy_pct",
        "Busy",
        Unit.PERCENT,
        "Time of the commands that ended, rewinds too, as a share of the interval; 100 % while one runs and none ends.",
    ),
    _tape("read_bytes_per_io", "r size", Unit.BYTES, "Mean size of a read."),
    _tape("write_bytes_per_io", "w size", Unit.BYTES, "Mean size of a write."),
    _tape("residuals_per_s", "resid/s", Unit.PER_SECOND, "Reads and writes per second that moved less than asked."),
)

_HOST = (
    _host("cpu_user_pct", "user", Unit.PERCENT, "CPU time in user space, of all CPUs."),
    _host("cpu_system_pct", "sys", Unit.PERCENT, "CPU time in the kernel, of all CPUs."),
    _host("cpu_iowait_pct", "iowait", Unit.PERCENT, "Idle with I/O outstanding (6.5+: idle io_uring too)."),
    _host("cpu_irq_pct", "irq", Unit.PERCENT, "CPU time in interrupts, of all CPUs."),
    _host("cpu_steal_pct", "steal", Unit.PERCENT, "CPU time taken by the hypervisor, of all CPUs."),
    _host("cpu_idle_pct", "idle", Unit.PERCENT, "CPU time idle, of all CPUs."),
    _host("memory_available_bytes", "mem free", Unit.BYTES, "Memory available without swapping."),
    _host("memory_total_bytes", "mem", Unit.BYTES, "Memory of the host."),
    _host("dirty_bytes", "dirty", Unit.BYTES, "Page cache waiting to be written."),
    _host("writeback_bytes", "writeback", Unit.BYTES, "Page cache being written now."),
    _host(
        "psi_io_some_pct", "psi io", Unit.PERCENT, "Time in which some task waited for I/O (6.5+: idle io_uring too)."
    ),
    _host("psi_io_full_pct", "psi io full", Unit.PERCENT, "Time in which all tasks waited for I/O; same caveat."),
    _host("psi_cpu_some_pct", "psi cpu", Unit.PERCENT, "Time in which some task waited for a CPU."),
    _host("psi_memory_some_pct", "psi mem", Unit.PERCENT, "Time in which some task waited for memory."),
)

_PROCESSES = (
    _process("pid", "PID", Unit.COUNT, "Process id."),
    _process("read_bytes_per_s", "rB/s", Unit.BYTES_PER_SECOND, "Bytes it caused to be read from storage."),
    _process(
        "write_bytes_per_s", "wB/s", Unit.BYTES_PER_SECOND, "Bytes it caused to be written, credited at dirtying."
    ),
    _process("syscalls_read_per_s", "r calls/s", Unit.PER_SECOND, "Read system calls."),
    _process("syscalls_write_per_s", "w calls/s", Unit.PER_SECOND, "Write system calls."),
)

_LOAD = (
    *_load("iops", "IOPS", Unit.PER_SECOND, "I/Os the engine completed per second."),
    *_load("reads_per_s", "r/s", Unit.PER_SECOND, "Reads the engine completed per second."),
    *_load("writes_per_s", "w/s", Unit.PER_SECOND, "Writes the engine completed per second."),
    *_load("bytes_per_s", "Thr", Unit.BYTES_PER_SECOND, "Bytes the engine moved per second."),
    *_load("read_bytes_per_s", "rB/s", Unit.BYTES_PER_SECOND, "Bytes the engine read per second."),
    *_load("write_bytes_per_s", "wB/s", Unit.BYTES_PER_SECOND, "Bytes the engine wrote per second."),
    *_load("await_ms", "lat", Unit.MILLISECONDS, "Mean latency from submit to reap; in an open loop from the arrival."),
    *_load("read_await_ms", "r lat", Unit.MILLISECONDS, "Mean read latency from submit to reap."),
    *_load("write_await_ms", "w lat", Unit.MILLISECONDS, "Mean write latency from submit to reap."),
    *_load("p50_ms", "p50", Unit.MILLISECONDS, "Half of the I/Os were faster."),
    *_load("p99_ms", "p99", Unit.MILLISECONDS, "99 % of the I/Os were faster."),
    *_load("p999_ms", "p99.9", Unit.MILLISECONDS, "99.9 % of the I/Os were faster; needs 1,000 I/Os in the interval."),
    *_load("max_ms", "Peak", Unit.MILLISECONDS, "Peak latency: the largest in the interval."),
    *_load("in_flight", "In fl", Unit.COUNT, "Outstanding I/Os of the engine, by Little's law over the interval."),
    *_load("queue_depth", "QD", Unit.COUNT, "Outstanding I/Os the engine keeps per target."),
    *_load("errors_per_s", "err/s", Unit.PER_SECOND, "I/Os that failed, per second."),
    *_load(
        "service_ms",
        "svc",
        Unit.MILLISECONDS,
        "Mean time from submit to reap, in an open loop; in a closed one the latency is that.",
    ),
    *_load("service_p99_ms", "svc p99", Unit.MILLISECONDS, "99 % of these times were shorter."),
    *_load("skipped_per_s", "skip/s", Unit.PER_SECOND, "Arrivals of an open loop that found no room in time."),
    *_load("errors", "errors", Unit.COUNT, "I/Os that failed since the load started."),
)

_LOAD_LAYOUT = (
    *_layout("iops", "IOPS", Unit.PER_SECOND, "Completed per second."),
    *_layout("bytes_per_s", "Thr", Unit.BYTES_PER_SECOND, "Bytes moved per second."),
    *_layout("await_ms", "lat", Unit.MILLISECONDS, "Mean latency."),
    *_layout("read_await_ms", "r lat", Unit.MILLISECONDS, "Mean read latency."),
    *_layout("write_await_ms", "w lat", Unit.MILLISECONDS, "Mean write latency."),
    *_layout("max_ms", "Peak", Unit.MILLISECONDS, "Peak latency: the largest in the interval."),
    *_layout("errors_per_s", "err/s", Unit.PER_SECOND, "Failed per second; another path may have made it good."),
    _load_path("in_flight", "In fl", Unit.COUNT, "Outstanding I/Os of the engine on this path, by Little's law."),
    _load_path("errors", "errors", Unit.COUNT, "Attempts that failed on this path since the load started."),
    _load_path("failed", "failed", Unit.COUNT, "1 while the engine leaves this path out and only probes it."),
)

TIER_MARKS: dict[Tier, str] = {Tier.NONE: " ", Tier.KERNEL: ":", Tier.SAMPLED: "~", Tier.EXACT: " "}
"""One character behind a figure that says how it was obtained."""

FIELDS: tuple[Field, ...] = (*_DISKS, *_PATHS, *_HBAS, *_TAPES, *_HOST, *_PROCESSES, *_LOAD, *_LOAD_LAYOUT)
"""In the order in which columns are offered."""

_BY_ID = {(field.table, field.id): field for field in FIELDS}


def fields_of(table: str) -> tuple[Field, ...]:
    """All fields of a frame table, in order."""
    return tuple(field for field in FIELDS if field.table == table)


def get_field(table: str, field_id: str) -> Field:
    """One field.

    Raises:
        KeyError: the registry has no such field.
    """
    return _BY_ID[(table, field_id)]
