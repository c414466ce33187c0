"""At which rate the links of a SAS or SATA port run."""

from __future__ import annotations

import re
from collections import Counter

from collectors.topology.buses import Buses
from collectors.topology.sysfs_location import SysfsLocation

_PHY_OF_HOST = re.compile(r"phy-(\d+):\d+")
"""Phys of expanders have three numbers (drivers/scsi/scsi_transport_sas.c, sas_phy_alloc)."""


def link_rate(host: str, location: SysfsLocation, buses: Buses) -> str:
    """Rate of a port such as "6.0 Gbps", or "4 x 12.0 Gbit" of a wide one; empty where the bus does not say.

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
