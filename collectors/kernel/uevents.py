"""Uevents: a netlink listener, the kernel's uevent counter, and a CPU budget for reacting to them."""

from __future__ import annotations

import errno
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from collectors.kernel.identity import kernel_name

BUFFER_BYTES = 8 << 20
"""Socket buffer for the uevents of about ten thousand paths; needs CAP_NET_ADMIN beyond net.core.rmem_max."""
_MOST_AT_ONCE = 20_000


class UnitAttention(NamedTuple):
    """What a SCSI device has told the kernel (scsi_evt_emit, drivers/scsi/scsi_lib.c)."""

    address: str
    """H:C:T:L."""
    change: str
    """Value of SDEV_UA, as REPORTED_LUNS_DATA_HAS_CHANGED."""


class UeventListener:
    """Collects the names of whole disks announced by uevents, and what SCSI devices say has changed.

    Raises:
        ImportError: there is no libudev.
        OSError: netlink is refused.
    """

    def __init__(self) -> None:
        import pyudev  # noqa: PLC0415 loads libudev, which a host may not have

        self._monitor = pyudev.Monitor.from_netlink(pyudev.Context(), source="kernel")
        self._monitor.filter_by("block", device_type="disk")
        self._monitor.filter_by("scsi", device_type="scsi_device")
        # Without the right to raise it the default size is used; losses are detected.
        with suppress(OSError):
            self._monitor.set_receive_buffer_size(BUFFER_BYTES)
        self._monitor.start()
        self._first: object | None = None
        self._lost = False
        self._attentions: list[UnitAttention] = []

    def fileno(self) -> int:
        """Descriptor that becomes readable when uevents wait."""
        return int(self._monitor.fileno())

    def pending(self) -> bool:
        """Whether a uevent of a disk is pending, some were lost, or a device has said something."""
        if self._first is None and not self._lost:
            self._first = self._receive()
        return self._first is not None or self._lost or bool(self._attentions)

    def take(self) -> frozenset[str] | None:
        """Return names announced since the last call; None if the kernel dropped some or there are too many."""
        names = set()
        for _ in range(_MOST_AT_ONCE):
            if not self.pending() or self._first is None:
                break
            names.add(kernel_name(str(getattr(self._first, "sys_name", ""))))
            self._first = None
        lost, self._lost = self._lost or self._first is not None, False
        return None if lost else frozenset(names)

    def take_attentions(self) -> tuple[UnitAttention, ...]:
        """Return what SCSI devices have said since the last call, each once."""
        found, self._attentions = tuple(dict.fromkeys(self._attentions)), []
        return found

    def _receive(self) -> object | None:
        """Return the next uevent of a disk; those of SCSI devices are noted or passed over."""
        try:
            device: Any = self._monitor.poll(0)
            while device is not None and device.subsystem == "scsi":
                if change := str(device.properties.get("SDEV_UA", "")):
                    self._attentions.append(UnitAttention(str(device.sys_name), change))
                device = self._monitor.poll(0)
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            self._lost = True
            return None
        found: object | None = device
        return found


class UeventCounter:
    """SYSFS/kernel/uevent_seqnum: number of uevents the kernel has sent; never changes if it cannot be read."""

    def __init__(self, sysfs: str) -> None:
        self._last = b""
        try:
            self._file: int | None = os.open(Path(sysfs, "kernel/uevent_seqnum"), os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._file = None

    def moved(self) -> bool:
        """Return whether uevents were sent since the last call."""
        now = self._read()
        moved = now != self._last
        self._last = now
        return moved

    def pending(self) -> bool:
        """Return whether uevents were sent since the last call of `moved`."""
        return self._read() != self._last

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _read(self) -> bytes:
        return b"" if self._file is None else os.pread(self._file, 32, 0)


CHEAP_S = 0.005
"""Work that costs no more than this is allowed at every tick."""


class Budget:
    """Limits expensive work to a share of the time."""

    def __init__(self, share: float) -> None:
        self._share = share
        self._next_s = 0.0

    def allows(self) -> bool:
        """Whether the work is allowed now."""
        return time.monotonic() >= self._next_s

    @property
    def pause_s(self) -> float:
        """Seconds until the work is allowed."""
        return max(0.0, self._next_s - time.monotonic())

    def spend(self, cost_s: float) -> None:
        """Account the cost of the work just done."""
        pause_s = 0.0 if cost_s <= CHEAP_S else cost_s / self._share
        self._next_s = time.monotonic() + pause_s
