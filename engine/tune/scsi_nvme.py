"""Tunables of SCSI devices and NVMe subsystems: drivers/scsi/scsi_sysfs.c, drivers/nvme/host/multipath.c."""

from __future__ import annotations

import re

from engine.text import whole_number
from engine.tune.forms import OFF, OffAsNegative
from engine.tune.legal import Legal
from engine.tune.tree import KernelTree
from engine.tune.tunable import Target, Tunable, TunedKind, between, fixed, one_of

_HOST = re.compile(r"/(host[0-9]+)/")


def _depths(tree: KernelTree, target: Target) -> Legal:
    """Up to what the HBA takes (sdev_store_queue_depth compares with can_queue)."""
    host = _HOST.search(f"/{target.folder}/")
    limit = tree.read(f"class/scsi_host/{host[1]}/can_queue") if host else None
    return Legal((), 1, whole_number(limit or ""))


def _iopolicy(tree: KernelTree, _target: Target) -> str:
    """Take the parameter of the module, by which new subsystems are made."""
    return tree.read("module/nvme_core/parameters/iopolicy") or "numa"


SCSI = (
    Tunable(
        "queue_depth",
        TunedKind.DISK,
        "device/queue_depth",
        "commands outstanding; the kernel lowers it on QUEUE FULL",
        "commands",
        legal=_depths,
        falls_by_itself=True,
    ),
    Tunable(
        "queue_ramp_up_period",
        TunedKind.DISK,
        "device/queue_ramp_up_period",
        "time without QUEUE FULL before queue_depth is raised again",
        "ms",
        legal=between(0),
        default=fixed("120000"),
    ),
    Tunable(
        "queue_type",
        TunedKind.DISK,
        "device/queue_type",
        "tagged queueing; current kernels ignore a change",
        legal=one_of("none", "simple", "ordered"),
    ),
    Tunable(
        "timeout",
        TunedKind.DISK,
        "device/timeout",
        "a command that takes longer is aborted",
        "s",
        legal=between(1),
        default=fixed("30"),
    ),
    Tunable(
        "eh_timeout",
        TunedKind.DISK,
        "device/eh_timeout",
        "limit of each command of the error handler",
        "s",
        legal=between(1),
        default=fixed("10"),
    ),
)

NVME = (
    Tunable(
        "iopolicy",
        TunedKind.SUBSYSTEM,
        "iopolicy",
        "path of each I/O of native multipath; queue-depth from Linux 6.11 on",
        legal=one_of("numa", "round-robin", "queue-depth"),
        default=_iopolicy,
    ),
    Tunable(
        "ctrl_loss_tmo",
        TunedKind.CONTROLLER,
        "ctrl_loss_tmo",
        "time without connection until a fabrics controller is removed",
        "s",
        form=OffAsNegative(),
        legal=between(0, None, OFF),
        default=fixed("600"),
    ),
    Tunable(
        "reconnect_delay",
        TunedKind.CONTROLLER,
        "reconnect_delay",
        "pause between attempts to reconnect a fabrics controller",
        "s",
        legal=between(1),
        default=fixed("10"),
        phase=0,
        resets=("ctrl_loss_tmo",),
    ),
)
"""ctrl_loss_tmo is kept as a number of attempts: the kernel rounds it up to whole delays."""

REMOTE_PORTS = (
    Tunable(
        "fast_io_fail_tmo",
        TunedKind.REMOTE_PORT,
        "fast_io_fail_tmo",
        "time without the FC remote port until its I/O fails",
        "s",
        legal=between(0, None, OFF),
    ),
    Tunable(
        "dev_loss_tmo",
        TunedKind.REMOTE_PORT,
        "dev_loss_tmo",
        "time without the FC remote port until its devices are removed",
        "s",
        legal=between(1),
    ),
)
"""drivers/scsi/scsi_transport_fc.c; without fast_io_fail_tmo the kernel takes no dev_loss_tmo above 600."""
