"""Which controller of the storage a path leads to: all its ports and portals are one, as far as identities tell."""

from __future__ import annotations

from collectors.topology.buses import Buses
from collectors.topology.graph import TargetPort
from collectors.topology.seen import Seen


def controller_of(one: Seen, target: TargetPort | None, buses: Buses) -> str:
    """Name the controller, such as "0x5006016080000001 group 2"; empty where nothing tells of it.

    Ports of one target port group of one array change their ALUA state together, which is what a controller is to
    multipathing; an iSCSI target portal group is the portals of one target node that a session may span (RFC 7143,
    4.1). Otherwise every target port stands for itself, under its name of VPD page 83h if it has one.
    """
    session = buses.iscsi_sessions.get(one.location.session, {})
    array = (target.array if target is not None else "") or one.far.device
    group = session.get("tpgt", "") if one.far.group is None else str(one.far.group)
    if array and group and not one.location.controller:
        return f"{array} group {group}"
    return one.far.port or (target.name if target is not None else "")
