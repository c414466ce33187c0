"""HBA ports, merged by WWPN or initiator address, and the target ports of paths."""

from __future__ import annotations

import re
from collections import Counter

from msgspec import Struct, field

from collectors.graph import Port, TargetPort
from collectors.kernel.sysfs import Facts, SysfsLocation, location_of
from collectors.topology.buses import Buses
from engine.replacing import replace
from engine.text import whole_number

_PHY_OF_HOST = re.compile(r"phy-(\d+):\d+")
"""Phys of expanders have three numbers (drivers/scsi/scsi_transport_sas.c, sas_phy_alloc)."""


def link_rate(host: str, location: SysfsLocation, buses: Buses) -> str:
    """Rate of a port such as "6.0 Gbps", or "4 x 12.0 Gbit" of a wide one; empty if the bus does not report it.

    A phy without a partner has no rate and is left out (negotiated_linkrate; sata_spd of Documentation/ABI/testing/
    sysfs-ata).
    """
    if location.ata:
        return _sata(buses.ata_links.get(f"link{location.ata.removeprefix('ata')}", {}).get("sata_spd", ""))
    if host not in buses.sas_hosts:
        return ""
    number = host.removeprefix("host")
    matches = ((_PHY_OF_HOST.fullmatch(name), facts) for name, facts in buses.sas_phys.items())
    rates = Counter(facts["negotiated_linkrate"] for match, facts in matches if match and match[1] == number)
    running = {rate: count for rate, count in rates.items() if rate[:1].isdigit()}
    return ", ".join(rate if count == 1 else f"{count} x {rate}" for rate, count in running.items())


def _sata(speed: str) -> str:
    return "" if speed.startswith("<") else speed


_NATURAL = re.compile(r"(\d+)")


class PortTable(Struct):
    """Ports found so far, and the port of each SCSI host, NVMe controller and virtio device."""

    by_key: dict[str, Port] = field(default_factory=dict)
    of_member: dict[str, str] = field(default_factory=dict)

    def add(self, port: Port) -> None:
        """Add a port, or its members to an existing one."""
        known = self.by_key.get(port.key)
        self.by_key[port.key] = port if known is None else _united(known, port)
        self.of_member.update(dict.fromkeys(port.members, port.key))

    def of_location(self, location: SysfsLocation) -> str:
        """Key of the port of a device, which is added if only the device refers to it; empty if it has none."""
        member = (
            location.host or location.controller or location.virtio or ("" if location.virtual else location.parent)
        )
        if member and member not in self.of_member:
            transport = "virtio" if member == location.virtio else "nvme" if member == location.controller else "scsi"
            if member == location.parent:
                transport = "other"
            self.add(Port(_key(member, location.parent), member, transport, parent=location.parent, members=(member,)))
        return self.of_member.get(member, "")

    def sorted(self) -> tuple[Port, ...]:
        """All ports in natural order."""
        return tuple(sorted(self.by_key.values(), key=lambda port: natural(port.name)))


def natural(name: str) -> list[tuple[int, str]]:
    """Sort key that puts host10 behind host9."""
    numbered = ((whole_number(part), part) for part in _NATURAL.split(name))
    return [(-1, part) if number is None else (number, "") for number, part in numbered]


def find_ports(buses: Buses) -> PortTable:
    """All ports in sysfs, with or without disks."""
    ports = PortTable()
    for name in sorted(buses.scsi_hosts, key=natural):
        ports.add(_scsi_port(name, buses))
    for name in sorted(buses.controllers, key=natural):
        ports.add(_nvme_port(name, buses))
    return ports


def _united(one: Port, other: Port) -> Port:
    limits = [limit for limit in (one.queue_limit, other.queue_limit) if limit is not None]
    return replace(
        one,
        state=one.state if one.state == other.state or not other.state else f"{one.state or '?'}/{other.state}",
        speed=one.speed or other.speed,
        queue_limit=sum(limits) if limits else None,
        members=tuple(dict.fromkeys((*one.members, *other.members))),
        scsi_hosts=tuple(dict.fromkeys((*one.scsi_hosts, *other.scsi_hosts))),
    )


def _key(name: str, parent: str) -> str:
    return f"{name}@{parent}" if parent and parent != name else name


def _scsi_port(name: str, buses: Buses) -> Port:
    facts = buses.scsi_hosts[name]
    location, _ = location_of(f"{buses.host_links[name]}/x", "x")
    # A virtual port (NPIV) is below the host of the physical one and shares its link.
    physical = location.host if location.host in buses.scsi_hosts else name
    fc = buses.fc_hosts.get(physical, {})
    iscsi = buses.iscsi_hosts.get(name, {})
    wwpn = fc.get("port_name", "")
    return Port(
        key=f"fc:{wwpn}" if wwpn else _key(physical, location.parent),
        name=name,
        transport=_scsi_transport(name, location, buses, facts),
        driver=facts["proc_name"],
        address=wwpn or iscsi.get("netdev", "") or iscsi.get("ipaddress", ""),
        parent=location.parent,
        state=fc.get("port_state") or facts["state"],
        speed=fc.get("speed", "") or link_rate(name, location, buses),
        queue_limit=_number(facts["can_queue"]),
        members=(name,),
        scsi_hosts=(name,),
        node_name=fc.get("node_name", ""),
        port_type=fc.get("port_type", ""),
        port_id=fc.get("port_id", ""),
        supported_speeds=fc.get("supported_speeds", ""),
    )


def _scsi_transport(name: str, location: SysfsLocation, buses: Buses, facts: Facts) -> str:
    lists = (("fc", buses.fc_hosts), ("iscsi", buses.iscsi_hosts), ("sas", buses.sas_hosts))
    listed = next((transport for transport, hosts in lists if name in hosts), "")
    by_location = "ata" if location.ata else "usb" if location.usb else ""
    return listed or by_location or ("virtio" if facts["proc_name"] == "virtio_scsi" else "scsi")


def _nvme_port(name: str, buses: Buses) -> Port:
    facts = buses.controllers[name]
    location, _ = location_of(f"{buses.controller_links[name]}/x", "x")
    address = address_parts(facts["address"])
    wwpn = address.get("host_traddr", "").partition("pn-")[2]
    local = address.get("host_iface") or address.get("host_traddr") or address.get("src_addr") or ""
    fabric = facts["transport"] not in {"", "pcie"}
    key = _key(name, location.parent)
    if fabric and local:
        key = f"fc:{wwpn}" if wwpn else f"{facts['transport']}:{local}"
    return Port(
        key=key,
        name=name,
        transport=f"nvme-{facts['transport']}" if facts["transport"] else "nvme",
        driver="nvme",
        address=(wwpn or local) if fabric else facts["address"],
        parent="" if fabric else location.parent,
        state=facts["state"],
        queue_limit=nvme_limit(facts),
        members=(name,),
        serial=facts["serial"],
        subsystem=facts["subsysnqn"],
        host_nqn=facts["hostnqn"],
    )


def address_parts(address: str) -> dict[str, str]:
    """Split `traddr=10.0.1.1,trsvcid=4420,src_addr=10.0.1.1`; empty for a PCI address."""
    return {name: value for name, equals, value in (part.partition("=") for part in address.split(",")) if equals}


def nvme_limit(facts: Facts) -> int | None:
    """Entries of all I/O queues: the first is the admin queue, one entry of each stays free (NVMe base, 3.3.1.5)."""
    queues, size = _number(facts["queue_count"]), _number(facts["sqsize"])
    return None if queues is None or size is None or queues < 2 else (queues - 1) * size


def _number(value: str) -> int | None:
    return whole_number(value)


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
