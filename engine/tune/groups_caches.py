"""Tunables of control groups and caches.

Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/blkio-controller.rst, bcache.rst; zfs(4).
"""

from __future__ import annotations

from engine.tune.forms import NO_LIMIT, Bracketed, DeviceKey, Throttle, Weight, words_of_brackets
from engine.tune.legal import Legal
from engine.tune.tree import KernelTree
from engine.tune.tunable import Target, Tunable, TunedKind, between, fixed

_LIMIT = between(1, None, NO_LIMIT)


def _limit(key: str, what: str, unit: str) -> Tunable:
    return Tunable(
        f"io.max.{key}",
        TunedKind.GROUP_DEVICE,
        "io.max",
        f"most {what} of the group; above it I/Os wait",
        unit,
        DeviceKey(key),
        legal=_LIMIT,
        default=fixed(NO_LIMIT),
    )


def _throttle(name: str, what: str, unit: str) -> Tunable:
    file = f"blkio.throttle.{name}_device"
    help_text = f"most {what} of the group (cgroup v1)"
    return Tunable(
        f"blkio.throttle.{name}",
        TunedKind.GROUP_DEVICE,
        file,
        help_text,
        unit,
        Throttle(),
        legal=_LIMIT,
        default=fixed(NO_LIMIT),
    )


GROUPS = (
    _limit("rbps", "bytes read per second", "B/s"),
    _limit("wbps", "bytes written per second", "B/s"),
    _limit("riops", "reads per second", "IO/s"),
    _limit("wiops", "writes per second", "IO/s"),
    Tunable(
        "io.weight",
        TunedKind.GROUP,
        "io.weight",
        "share of the group where groups compete; needs io.cost or bfq",
        form=Weight(),
        legal=between(1, 10000),
        default=fixed("100"),
    ),
    Tunable(
        "io.weight.device",
        TunedKind.GROUP_DEVICE,
        "io.weight",
        "share of the group on one device",
        form=Weight(),
        legal=between(1, 10000, "default"),
        default=fixed("default"),
    ),
    Tunable(
        "io.latency",
        TunedKind.GROUP_DEVICE,
        "io.latency",
        "target latency; others are throttled while it is missed",
        "us",
        DeviceKey("target"),
        legal=between(1, None, NO_LIMIT),
        default=fixed(NO_LIMIT),
    ),
    _throttle("read_bps", "bytes read per second", "B/s"),
    _throttle("write_bps", "bytes written per second", "B/s"),
    _throttle("read_iops", "reads per second", "IO/s"),
    _throttle("write_iops", "writes per second", "IO/s"),
)


def _cache_modes(tree: KernelTree, target: Target) -> Legal:
    return Legal(words_of_brackets(tree.read(f"{target.folder}/bcache/cache_mode") or ""))


CACHES = (
    Tunable(
        "bcache.cache_mode",
        TunedKind.DISK,
        "bcache/cache_mode",
        "what bcache does with writes; 'none' is no caching",
        form=Bracketed(),
        legal=_cache_modes,
        default=fixed("writethrough"),
    ),
    Tunable(
        "zfs_arc_max",
        TunedKind.HOST,
        "module/zfs/parameters/zfs_arc_max",
        "largest ARC of ZFS; 0 is automatic",
        "B",
        legal=between(0),
        default=fixed("0"),
    ),
)
