"""Which device mapper devices are multipath maps: sysfs does not name their target."""

from __future__ import annotations

from collections.abc import Mapping

from collectors.model import Device
from collectors.topology.seen import Seen

MULTIPATH_UUID = "mpath-"
"""What multipathd starts the uuid of its maps with (multipath-tools, libmultipath/devmapper.h)."""


def multipath_maps(seen: Mapping[str, Seen]) -> frozenset[str]:
    """Keys of all multipath maps: those of multipathd, and those by hand that stand on one disk several times."""
    devices = {one.device.name: one.device for one in seen.values()}
    maps = ((key, one.device) for key, one in seen.items() if one.device.kind == "dm")
    return frozenset(
        key
        for key, device in maps
        if device.persistent_id.startswith(MULTIPATH_UUID) or _stands_on_one_disk(device, devices)
    )


def _stands_on_one_disk(device: Device, devices: Mapping[str, Device]) -> bool:
    """Whether a map without a uuid has several slaves that are all the same; no other target makes sense on those."""
    below = [devices[name] for name in device.slaves if name in devices]
    identities = {one.persistent_id for one in below}
    return not device.persistent_id and len(below) > 1 and len(identities) == 1 and "" not in identities
