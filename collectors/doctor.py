"""Checks of this host: what works, which tier its figures get, and how to enable more."""

from __future__ import annotations

import ctypes.util
import os
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from collectors.advice.finding import FindingKind, in_order
from collectors.advice.state_rules import DeviceStates, state_findings
from collectors.exact.probe.client import connect, helper_path
from collectors.exact.tracer_supervisor import NFS_CALLS, THROTTLE, full_refusal
from collectors.sampling.reading_settings import TYPES_VARIABLE
from collectors.topology.scanner import read_topology
from engine import _native
from engine.errors import LunscopeError, words_of
from engine.hostfs.kernel_files import read_number, read_text
from engine.text import safe_text


def exact_time(procfs: Path, sysfs: Path) -> Check:
    """Attach and detach, or report why that fails and how to enable it."""
    refusal = full_refusal(str(procfs), str(sysfs))
    if not refusal:
        return _attached(sysfs)
    if helper_path().is_socket():
        return _by_helper(helper_path())
    return Check("exact time", Status.MISSING, *_with_fix(refusal))


def _attached(sysfs: Path) -> Check:
    started_s = time.monotonic()
    try:
        tracer = _native.BlockTracer(str(sysfs))
    except OSError as error:
        return Check("exact time", Status.MISSING, *_with_fix(words_of(error)))
    took_ms = 1e3 * (time.monotonic() - started_s)
    typed, fetch = tracer.form()
    tracer.close()
    kind = "block tracepoints" if typed else "block tracepoints (raw, arguments without types)"
    found = f"{kind} can be watched, ready after {took_ms:.0f} ms: tier exact"
    if fetch:
        return Check("exact time", Status.OK, found)
    lacks = "but for busy time and peaks in the driver, as the kernel has no atomic operations with results (BPF_FETCH)"
    return Check("exact time", Status.LIMITED, f"{found} {lacks}", "Linux 5.12 or newer; until then these are sampled")


def _with_fix(refusal: str) -> tuple[str, str]:
    """Take apart what the core says: what is missing, and after the last colon the fix."""
    found, _, fix = refusal.rpartition(": ")
    return (found, fix) if found else (fix, "")


def kernel_types(sysfs: Path, named_by: str) -> Check:
    """Say which description of the kernel's types (BTF) exact time reads, and what named it."""
    try:
        path, is_own = _native.kernel_types(str(sysfs))
    except OSError as error:
        return Check("kernel types", Status.MISSING, *_with_fix(words_of(error)))
    named = os.environ.get(TYPES_VARIABLE, "")
    if not is_own:
        return Check("kernel types", Status.OK, f"{safe_text(path)}, named by {named_by}")
    unused = f"; {safe_text(named)}, named by {named_by}, is not needed" if named else ""
    return Check("kernel types", Status.OK, f"{safe_text(path)}, the kernel's own{unused}")


def _by_helper(path: Path) -> Check:
    try:
        connect(path).close()
    except LunscopeError as error:
        return Check("exact time", Status.MISSING, str(error))
    except OSError as error:
        fix = "start it again: sudo lunscope probe, or systemctl restart lunscope-probe"
        return Check("exact time", Status.MISSING, f"the probe helper at {path} does not answer: {error}", fix)
    return Check("exact time", Status.OK, f"the probe helper at {path} lets this user read: tier exact")


class Status(StrEnum):
    """How well one thing works."""

    OK = "ok"
    LIMITED = "limited"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Check:
    """Result of one check: what was found and, unless it is fine, the fix."""

    id: str
    status: Status
    found: str
    fix: str = ""


_MOST_NAMES = 5


def examine(procfs: Path, sysfs: Path, types_named_by: str = TYPES_VARIABLE) -> tuple[Check, ...]:
    """Run every check; none changes anything and none raises.

    Args:
        procfs: where it is mounted.
        sysfs: where it is mounted.
        types_named_by: option, variable or setting that put a file in TYPES_VARIABLE, if there is any.
    """
    checks: tuple[Callable[[], Check], ...] = (
        lambda: _diskstats(procfs),
        lambda: _in_flight(sysfs),
        lambda: kernel_types(sysfs, types_named_by),
        lambda: exact_time(procfs, sysfs),
        lambda: _tag_wait(procfs, sysfs),
        lambda: _throttle_wait(procfs, sysfs),
        lambda: _nfs_latency(procfs, sysfs),
        lambda: _accounting(sysfs),
        _libudev,
        _io_uring,
        _read_only_rings,
        _rights,
        lambda: _processes(procfs),
        _locked_memory,
        _descriptors,
        lambda: _async_io(procfs),
        lambda: _pressure(procfs),
        _terminal,
        lambda: _settings(procfs, sysfs),
    )
    return tuple(check() for check in checks)


def _has_tracepoint(sysfs: Path, name: str) -> bool:
    """Whether the description of the kernel's types knows a tracepoint, whose names it holds as plain text."""
    try:
        return f"\0btf_trace_{name}\0".encode() in Path(_native.kernel_types(str(sysfs))[0]).read_bytes()
    except OSError:
        return False


def _diskstats(procfs: Path) -> Check:
    path = procfs / "diskstats"
    try:
        fields = {len(line.split()) for line in path.read_text(errors="replace").splitlines()}
    except OSError as error:
        fix = "mount procfs, or name it with --procfs"
        return Check("diskstats", Status.MISSING, f"{path}: {error.strerror}", fix)
    if not fields:
        return Check(
            "diskstats", Status.LIMITED, f"{path} lists no device", "in a container give the host's with --procfs"
        )
    return Check("diskstats", Status.OK, f"{path} with {max(fields)} fields")


def _in_flight(sysfs: Path) -> Check:
    readable = sum(os.access(path, os.R_OK) for path in (sysfs / "block").glob("*/inflight"))
    if not readable:
        fix = "mount sysfs, or name it with --sysfs; queue and service time stay unknown without it"
        return Check("in-flight sampling", Status.MISSING, f"no readable {sysfs}/block/*/inflight", fix)
    return Check("in-flight sampling", Status.OK, f"{readable} devices: tier sampled for busy disks")


def _tag_wait(procfs: Path, sysfs: Path) -> Check:
    if full_refusal(str(procfs), str(sysfs)) and not helper_path().is_socket():
        return Check("tag wait", Status.MISSING, "not timed: it needs exact time")
    if _has_tracepoint(sysfs, "block_rq_tag_wait"):
        event = "timed from block_rq_tag_wait to block_getrq, while submitters wait or when enabled; else known to be 0"
        return Check("tag wait", Status.OK, event)
    pair = "timed between block_bio_queue and block_getrq, while a queue is full or when enabled"
    return Check("tag wait", Status.OK, pair)


def _throttle_wait(procfs: Path, sysfs: Path) -> Check:
    refusal = THROTTLE.refusal(str(procfs), str(sysfs))
    if not refusal:
        return Check("throttle wait", Status.OK, "the limits of cgroups (io.max, blkio.throttle) can be watched")
    return Check("throttle wait", Status.LIMITED, f"not timed: {refusal}", "")


def _nfs_latency(procfs: Path, sysfs: Path) -> Check:
    if not os.path.lexists(procfs / "fs/nfsfs"):
        return Check("NFS latency", Status.OK, "no NFS client here")
    refusal = NFS_CALLS.refusal(str(procfs), str(sysfs))
    if not refusal:
        return Check("NFS latency", Status.OK, "each call of NFS mounts can be timed (sunrpc:rpc_stats_latency)")
    return Check("NFS latency", Status.LIMITED, f"means only, no percentiles: {refusal}", "")


def _accounting(sysfs: Path) -> Check:
    queues = sorted((sysfs / "block").glob("*/queue/iostats"))
    off = [path.parents[1].name for path in queues if read_text(path) == "0"]
    if not off:
        return Check("accounting", Status.OK, f"{len(queues)} devices count their I/O (queue/iostats)")
    listed = ", ".join(off[:_MOST_NAMES]) + (f" and {len(off) - _MOST_NAMES} more" if len(off) > _MOST_NAMES else "")
    fix = f"lunscope tune set iostats=1 --on {off[0]} --keep; exact time sees their service time, queue time is unknown"
    return Check("accounting", Status.LIMITED, f"{listed}: the kernel does not count (queue/iostats is 0)", fix)


def _settings(procfs: Path, sysfs: Path) -> Check:
    """Check what is set unequally, by the topology alone: what needs figures under load is said of a load."""
    try:
        found = in_order(state_findings(DeviceStates(read_topology(procfs, sysfs))))
    except LunscopeError as error:
        return Check("settings", Status.MISSING, str(error))
    found = tuple(each for each in found if each.kind is not FindingKind.UNCOUNTED)  # The check of accounting has it.
    if not found:
        return Check("settings", Status.OK, "paths and stripes admit the same numbers of commands")
    more = f" (and {len(found) - 1} more of its kind)" if len(found) > 1 else ""
    return Check("settings", Status.LIMITED, found[0].text + more, found[0].command)


def _libudev() -> Check:
    if ctypes.util.find_library("udev"):
        return Check("hot-plug events", Status.OK, "libudev found")
    fix = "install libudev (package libudev1 or systemd-libs)"
    return Check("hot-plug events", Status.LIMITED, "no libudev: devices are listed again every 60 s", fix)


def _io_uring() -> Check:
    refusal = _native.uring_refusal()
    if refusal:
        return Check("io_uring", Status.LIMITED, f"{refusal}; loads use threads")
    return Check("io_uring", Status.OK, "available")


def _read_only_rings() -> Check:
    """Whether the kernel itself refuses writes of a load that may only read; files are open for reading only anyway."""
    if _native.uring_refusal():
        return Check("read-only rings", Status.LIMITED, "no io_uring: loads that read have files open for reading only")
    refusal = _native.read_only_ring_refusal()
    if refusal:
        fix = "needs Linux 5.10 and no filter on io_uring_register; files are open for reading only all the same"
        return Check("read-only rings", Status.LIMITED, f"not in force: {refusal}", fix)
    return Check("read-only rings", Status.OK, "in force: the kernel refused a write on a ring not armed for writing")


def _rights() -> Check:
    if os.geteuid() == 0:
        return Check("rights", Status.OK, "root")
    fix = "sudo, or the group that owns the disks, to load block devices and to see every process"
    return Check("rights", Status.LIMITED, f"uid {os.geteuid()}", fix)


def _processes(procfs: Path) -> Check:
    pids = [path for path in procfs.glob("[0-9]*") if path.name.isdigit()]
    hidden = sum(not os.access(path / "io", os.R_OK) for path in pids)
    if hidden:
        return Check("processes", Status.LIMITED, f"I/O of {hidden} of {len(pids)} processes is hidden", "run as root")
    return Check("processes", Status.OK, f"I/O of all {len(pids)} processes is readable")


def _locked_memory() -> Check:
    soft, _ = resource.getrlimit(resource.RLIMIT_MEMLOCK)
    if os.geteuid() == 0 or soft == resource.RLIM_INFINITY or soft >= 64 << 20:
        return Check("locked memory", Status.OK, "enough for registered buffers")
    fix = "ulimit -l unlimited; larger loads go on with unregistered buffers and more CPU per I/O"
    return Check("locked memory", Status.LIMITED, f"limit {soft >> 10} KiB", fix)


def _descriptors() -> Check:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 4096:
        return Check(
            "descriptors", Status.LIMITED, f"limit {soft}, at most {hard}", "raise ulimit -Hn for many devices"
        )
    return Check("descriptors", Status.OK, f"limit {soft}, raised when needed")


_NEARLY_ALL = 0.9


def _async_io(procfs: Path) -> Check:
    """Compare the events for which io_setup(2) has made room, of all processes, with their most."""
    used, most = (read_number(procfs / "sys/fs" / name) for name in ("aio-nr", "aio-max-nr"))
    if used is None or most is None:
        return Check("async I/O", Status.OK, "this kernel has no limit on events of io_setup (fs.aio-max-nr)")
    found = f"{used:,} of {most:,} events of io_setup are taken (fs.aio-nr, fs.aio-max-nr)"
    if used < _NEARLY_ALL * most:
        return Check("async I/O", Status.OK, found)
    return Check("async I/O", Status.LIMITED, found, f"databases may fail to start: sysctl fs.aio-max-nr={2 * most}")


def _pressure(procfs: Path) -> Check:
    if (procfs / "pressure" / "io").exists():
        return Check("pressure", Status.OK, "PSI available")
    return Check("pressure", Status.LIMITED, f"no {procfs}/pressure/io", "boot with psi=1 (kernel 4.20 or later)")


def _terminal() -> Check:
    if not sys.stdout.isatty():
        return Check("terminal", Status.LIMITED, "not a terminal: run --headless, record and report work", "")
    columns, lines = os.get_terminal_size()
    encoding = sys.stdout.encoding or "?"
    found = f"{columns}x{lines}, TERM={os.environ.get('TERM', '?')}, {encoding}"
    if columns < 80 or lines < 24:
        return Check("terminal", Status.LIMITED, found, "80x24 or larger shows every screen whole")
    return Check("terminal", Status.OK, found)
