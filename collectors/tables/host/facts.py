"""Facts of the host needed to interpret its figures, and the caveats of its kernel."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable

from collectors.kernel.identity import storable_name
from collectors.model import MISSING, Device, HostFacts, Tier
from collectors.tables.host.reader import HostCollector
from collectors.tables.host.schema import HOST
from engine.hostfs.kernel_files import read_text, start_of

_MOST_NAMES = 5
_CPUINFO_BYTES = 4096
"""What is read of /proc/cpuinfo: the first processor is enough; all take milliseconds on hosts with hundreds."""
_MODEL = re.compile(r"^model name\s*:(.*)$", re.MULTILINE | re.ASCII)
_BITS_64 = re.compile(r"64|s390x|ppc64le|sparc64|alpha")


def read_host_facts(procfs: str = "/proc", tier: Tier = Tier.KERNEL, notices: Iterable[str] = ()) -> HostFacts:
    """Read the facts of the host; unreadable ones are empty."""
    kernel = _text(procfs, "sys/kernel/osrelease")
    host = HostCollector(procfs).read().tables[HOST.name]
    cpus, memory_bytes = host.column("cpus")[0], host.column("memory_total_bytes")[0]
    machine = _text(procfs, "sys/kernel/arch") or os.uname().machine
    return HostFacts(
        hostname=_text(procfs, "sys/kernel/hostname"),
        kernel=kernel,
        machine=machine,
        cpus=0 if cpus == MISSING else int(cpus),
        cpu_model=_cpu_model(procfs),
        memory_bytes=None if memory_bytes == MISSING else int(memory_bytes),
        long_bits=64 if _BITS_64.search(machine) else 32,
        boot_id=_text(procfs, "sys/kernel/random/boot_id"),
        tier=tier,
        notices=(*kernel_notices(kernel), *right_notices(os.geteuid()), *notices),
    )


def kernel_notices(release: str) -> tuple[str, ...]:
    """Return the known accounting errors of this kernel."""
    version = re.match(r"(\d{1,9})\.(\d{1,9})", release, re.ASCII)
    if version is None:
        return ()
    number = int(version[1]), int(version[2])
    notices = []
    if (5, 0) <= number < (6, 10):
        notices.append(f"kernel {release}: busy time of lightly loaded disks is counted too high before 6.10")
    if number >= (6, 5):
        notices.append(f"kernel {release}: iowait and PSI io also count tasks that only wait in io_uring")
    return tuple(notices)


def right_notices(user_id: int) -> tuple[str, ...]:
    """Return the limits of a user other than root."""
    if user_id == 0:
        return ()
    return ("not root: the I/O of other users' processes is hidden, and disks cannot be loaded",)


def device_notices(devices: Iterable[Device]) -> tuple[str, ...]:
    """Return a notice about devices with accounting off."""
    names = sorted(device.name for device in devices if device.iostats is False)
    if not names:
        return ()
    listed = ", ".join(names[:_MOST_NAMES]) + (
        f" and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    )
    return (f"{listed}: counters do not change because queue/iostats is 0; write 1 to it",)


def _cpu_model(procfs: str) -> str:
    head = start_of(f"{procfs}/cpuinfo", _CPUINFO_BYTES).decode("utf-8", "surrogateescape")
    found = _MODEL.search(head)
    return "" if found is None else storable_name(" ".join(found[1].split()))


def _text(procfs: str, name: str) -> str:
    return storable_name(read_text(f"{procfs}/{name}") or "")
