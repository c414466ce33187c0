"""Target ports: the far end of a path, by the name its transport gives it."""

from __future__ import annotations

from collectors.topology.buses import Buses
from collectors.topology.graph import Port, TargetPort
from collectors.topology.place import Place
from collectors.topology.ports import address_parts


def target_of(place: Place, port: Port | None, buses: Buses) -> TargetPort | None:
    """Far end of the path of a device at `place`; None where the bus has no such thing."""
    if place.controller:
        return _nvme_target(place.controller, buses)
    if place.session:
        return _iscsi_target(place.session, buses)
    if place.remote_port:
        return _fc_target(place, buses)
    if place.end_device:
        address = buses.sas_devices.get(place.end_device, {}).get("sas_address", "")
        name = address or place.end_device
        return TargetPort(f"sas:{name}", name, "sas")
    if place.target:
        return TargetPort(place.target, place.target, port.transport if port else "scsi")
    return None


def _nvme_target(controller: str, buses: Buses) -> TargetPort:
    facts = buses.controllers.get(controller, {})
    array, address = facts.get("subsysnqn", ""), address_parts(facts.get("address", ""))
    transport = facts.get("transport", "") or "?"
    if "traddr" not in address:
        # On PCIe the controller is the far end as well.
        return TargetPort(f"nvme:{controller}@{facts.get('address', '')}", controller, f"nvme-{transport}", array)
    far = address["traddr"].partition("pn-")[2] or address["traddr"]
    name = f"{far}:{address['trsvcid']}" if address.get("trsvcid", "none") != "none" else far
    if transport == "fc":
        return TargetPort(f"fc:{far}", far, "fc", array)
    return TargetPort(f"{transport}:{name}", name, f"nvme-{transport}", array)


def _iscsi_target(session: str, buses: Buses) -> TargetPort:
    facts = buses.iscsi_sessions.get(session, {})
    connection = buses.iscsi_connections.get(f"connection{session.removeprefix('session')}:0", {})
    portal = ":".join(filter(None, (connection.get("persistent_address"), connection.get("persistent_port"))))
    iqn = facts.get("targetname") or session
    name = f"{iqn},{facts.get('tpgt', '')}@{portal}" if portal else iqn
    return TargetPort(f"iscsi:{name}", name, "iscsi", iqn)


def _fc_target(place: Place, buses: Buses) -> TargetPort:
    facts = buses.fc_targets.get(place.target) or buses.remote_ports.get(place.remote_port) or {}
    wwpn = facts.get("port_name") or place.remote_port
    return TargetPort(f"fc:{wwpn}", wwpn, "fc", facts.get("node_name", ""))
