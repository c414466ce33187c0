"""Target ports of paths, named by their transport."""

from __future__ import annotations

from collectors.graph import Port, TargetPort
from collectors.kernel.sysfs import SysfsLocation
from collectors.topology.buses import Buses
from collectors.topology.ports import address_parts


def target_of(location: SysfsLocation, port: Port | None, buses: Buses) -> TargetPort | None:
    """Target port of the path of a device at `location`; None if the bus has no target ports."""
    if location.controller:
        return _nvme_target(location.controller, buses)
    if location.session:
        return _iscsi_target(location.session, buses)
    if location.remote_port:
        return _fc_target(location, buses)
    if location.end_device:
        address = buses.sas_devices.get(location.end_device, {}).get("sas_address", "")
        name = address or location.end_device
        return TargetPort(f"sas:{name}", name, "sas")
    if location.target:
        return TargetPort(location.target, location.target, port.transport if port else "scsi")
    return None


def _nvme_target(controller: str, buses: Buses) -> TargetPort:
    facts = buses.controllers.get(controller, {})
    array, address = facts.get("subsysnqn", ""), address_parts(facts.get("address", ""))
    transport = facts.get("transport", "") or "?"
    if "traddr" not in address:
        # On PCIe the controller is also the target port.
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


def _fc_target(location: SysfsLocation, buses: Buses) -> TargetPort:
    facts = buses.fc_targets.get(location.target) or buses.remote_ports.get(location.remote_port) or {}
    wwpn = facts.get("port_name") or location.remote_port
    return TargetPort(f"fc:{wwpn}", wwpn, "fc", facts.get("node_name", ""))
