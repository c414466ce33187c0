"""Timeouts of the connection that a path uses: remote port, iSCSI session or NVMe controller."""

from __future__ import annotations

from typing import NamedTuple

from collectors.kernel.sysfs import Facts, SysfsLocation
from collectors.topology.buses import Buses
from engine.text import whole_number

OFF = -1
"""Value of a timeout that is switched off; the kernel prints `off`."""


class ConnectionTimeouts(NamedTuple):
    """Timeouts in seconds; None if the bus has none or the kernel does not show it, OFF if it is switched off."""

    loss_s: int | None = None
    fast_fail_s: int | None = None
    reconnect_s: int | None = None
    keep_alive_s: int | None = None


def timeouts_of(location: SysfsLocation, buses: Buses) -> ConnectionTimeouts:
    """Timeouts of the connection of a device (scsi_transport_{fc,iscsi}.c, drivers/nvme/host/sysfs.c)."""
    if location.controller:
        controller = buses.controllers.get(location.controller, {})
        return ConnectionTimeouts(
            loss_s=_seconds(controller, "ctrl_loss_tmo"),
            fast_fail_s=_seconds(controller, "fast_io_fail_tmo"),
            reconnect_s=_seconds(controller, "reconnect_delay"),
            keep_alive_s=_seconds(controller, "kato"),
        )
    if location.session:
        return ConnectionTimeouts(fast_fail_s=_seconds(buses.iscsi_sessions.get(location.session, {}), "recovery_tmo"))
    port = buses.remote_ports.get(location.remote_port, {})
    return ConnectionTimeouts(_seconds(port, "dev_loss_tmo"), _seconds(port, "fast_io_fail_tmo"))


def _seconds(facts: Facts, name: str) -> int | None:
    text = facts.get(name, "")
    return OFF if text in {"off", "-1"} else whole_number(text)
