"""The raw table of control groups."""

from __future__ import annotations

from collectors.model import Column, Kind, Schema

COUNTS = ("read_bytes", "write_bytes", "reads", "writes", "discard_bytes", "discards")
"""In the order of `io.stat`."""
COSTS = ("cost_usage_us", "cost_wait_us", "cost_indebt_us", "cost_indelay_us")
VRATE = "cost_vrate_hundredths"
LIMITS = ("read_limit_bytes", "write_limit_bytes", "read_limit_ios", "write_limit_ios")
PRESSURES = ("psi_some_us", "psi_full_us")

CGROUP = Schema(
    "cgroup",
    (
        *(Column(name, Kind.COUNTER) for name in (*COUNTS, *COSTS)),
        Column(VRATE, Kind.GAUGE),
        *(Column(name, Kind.GAUGE) for name in LIMITS),
        *(Column(name, Kind.COUNTER) for name in PRESSURES),
    ),
)
"""One row per control group and device it did I/O on (Documentation/admin-guide/cgroup-v2.rst, "IO Interface Files";
blkio-controller.rst of cgroup v1). Rows include the I/O of descendants, as the kernel adds it up. `cost_*` are present
if io.cost is enabled (waits with the module parameter blkcg_debug_stats), the rate of its clock in hundredths of a
percent in rows of the root only. Limits are per second, missing if there is none. `psi_*` are of the group,
independent of the device: the same in all of its rows."""
