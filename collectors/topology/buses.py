"""sysfs facts of SCSI hosts, FC, iSCSI and SAS transports and NVMe controllers, read once per scan."""

from __future__ import annotations

from msgspec import Struct

from collectors.kernel.sysfs import Facts, class_link, read_class

_SCSI_HOST = ("proc_name", "can_queue", "state")
_FC_HOST = ("port_name", "port_state", "speed", "node_name", "port_type", "port_id", "supported_speeds")
_ISCSI_HOST = ("ipaddress", "netdev")
_ISCSI_SESSION = ("targetname", "tpgt", "state", "recovery_tmo")
_ISCSI_CONNECTION = ("persistent_address", "persistent_port")
_FC_TARGET = ("port_name", "node_name")
_REMOTE_PORT = (*_FC_TARGET, "port_state", "dev_loss_tmo", "fast_io_fail_tmo")
_SAS_DEVICE = ("sas_address",)
_SAS_PHY = ("negotiated_linkrate",)
_ATA_LINK = ("sata_spd",)
_NVME_TIMEOUTS = ("ctrl_loss_tmo", "reconnect_delay", "fast_io_fail_tmo", "kato")
_NVME = (
    "transport", "address", "state", "queue_count", "sqsize", "subsysnqn", "cntlid", "serial", "hostnqn",
    *_NVME_TIMEOUTS,
)  # fmt: skip
_SUBSYSTEM = ("iopolicy", "subsysnqn")


class Buses(Struct, frozen=True):
    """Facts by kernel name; Documentation/ABI/testing/sysfs-class-* and sysfs-ata, scsi_transport_*.c, nvme/host."""

    scsi_hosts: dict[str, Facts]
    host_links: dict[str, str]
    fc_hosts: dict[str, Facts]
    fc_targets: dict[str, Facts]
    remote_ports: dict[str, Facts]
    iscsi_hosts: dict[str, Facts]
    iscsi_sessions: dict[str, Facts]
    iscsi_connections: dict[str, Facts]
    sas_hosts: dict[str, Facts]
    sas_devices: dict[str, Facts]
    sas_phys: dict[str, Facts]
    ata_links: dict[str, Facts]
    controllers: dict[str, Facts]
    controller_links: dict[str, str]
    subsystems: dict[str, Facts]


def read_buses(sysfs: str) -> Buses:
    """Read all classes; those missing on this host are empty."""
    hosts = read_class(sysfs, "scsi_host", _SCSI_HOST)
    controllers = read_class(sysfs, "nvme", _NVME)
    return Buses(
        scsi_hosts=hosts,
        host_links={name: class_link(sysfs, "scsi_host", name) for name in hosts},
        fc_hosts=read_class(sysfs, "fc_host", _FC_HOST),
        fc_targets=read_class(sysfs, "fc_transport", _FC_TARGET),
        remote_ports=read_class(sysfs, "fc_remote_ports", _REMOTE_PORT),
        iscsi_hosts=read_class(sysfs, "iscsi_host", _ISCSI_HOST),
        iscsi_sessions=read_class(sysfs, "iscsi_session", _ISCSI_SESSION),
        iscsi_connections=read_class(sysfs, "iscsi_connection", _ISCSI_CONNECTION),
        sas_hosts=read_class(sysfs, "sas_host", ()),
        sas_devices=read_class(sysfs, "sas_device", _SAS_DEVICE),
        sas_phys=read_class(sysfs, "sas_phy", _SAS_PHY),
        ata_links=read_class(sysfs, "ata_link", _ATA_LINK),
        controllers=controllers,
        controller_links={name: class_link(sysfs, "nvme", name) for name in controllers},
        subsystems=read_class(sysfs, "nvme-subsystem", _SUBSYSTEM),
    )
