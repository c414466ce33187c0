"""The raw table of control groups, and names and keys of its rows."""

from __future__ import annotations

from collectors.model import Column, HistogramScale, Kind, Schema
from engine.text import whole_number


def row_key(number: int, disk: str, path: str) -> str:
    """Key of a group's row: the number of the group, the key of the disk, the path of the group."""
    return f"{number} {disk} {path}"


def number_of(key: str) -> int:
    """Return the number of the group from a key made by `row_key`; -1 for other keys."""
    number = whole_number(key.partition(" ")[0])
    return -1 if number is None else number


def parts_of(key: str) -> tuple[str, str]:
    """Return the disk's key and the group's path from a key made by `row_key`."""
    _, _, rest = key.partition(" ")
    disk, _, path = rest.partition(" ")
    return disk, path


def row_name(path: str, disk: str) -> str:
    """Name of a group's row."""
    return f"{path} {disk}"


def short_name(name: str, width: int) -> str:
    """Shorten a name from the front: the last folders of a long path distinguish groups."""
    return name if len(name) <= width else f"+{name[1 - width :]}"


COUNTS = ("read_bytes", "write_bytes", "reads", "writes", "discard_bytes", "discards")
"""Counters in the order of `io.stat`."""
COSTS = ("cost_usage_us", "cost_wait_us", "cost_indebt_us", "cost_indelay_us")
VRATE = "cost_vrate_hundredths"
LIMITS = ("read_limit_bytes", "write_limit_bytes", "read_limit_ios", "write_limit_ios")
PRESSURES = ("psi_some_us", "psi_full_us")
THROTTLED = ("throttle_ios", "throttle_wait_ns")
THROTTLE_SERIES = ("throttle",)
THROTTLE_SCALE = HistogramScale(unit_ns=1024, sub_bits=3)
"""Buckets at most 12.5 % wide; longer than 137 s counts as 137 s (engine/native/bpf/throttle.h)."""

CGROUP = Schema(
    "cgroup",
    (
        *(Column(name, Kind.COUNTER) for name in (*COUNTS, *COSTS)),
        Column(VRATE, Kind.GAUGE),
        *(Column(name, Kind.GAUGE) for name in LIMITS),
        *(Column(name, Kind.COUNTER) for name in (*PRESSURES, *THROTTLED)),
    ),
)
"""One row per control group and device it did I/O on (Documentation/admin-guide/cgroup-v2.rst, "IO Interface Files";
blkio-controller.rst of cgroup v1). Rows include the I/O of descendants, as the kernel adds it up. `cost_*` are present
if io.cost is enabled (waits with the module parameter blkcg_debug_stats), the rate of its clock in hundredths of a
percent in rows of the root only. Limits are per second, missing if there is none. `psi_*` are of the group,
independent of the device: the same in all of its rows. `throttle_*` count the I/Os that the limits held and how long,
until they were let go; missing where the kernel's functions cannot be traced and while no group has a limit. Histograms
of the same name have one series, these waits."""
