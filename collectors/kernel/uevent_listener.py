"""The kernel's own uevents of block devices over netlink; no udevd is needed."""

from __future__ import annotations

import errno
from contextlib import suppress

from collectors.kernel.identity import kernel_name

BUFFER_BYTES = 8 << 20
"""Room for the uevents of some ten thousand paths; needs CAP_NET_ADMIN beyond net.core.rmem_max."""
_MOST_AT_ONCE = 20_000


class UeventListener:
    """Collects the names of whole disks the kernel announces.

    Raises:
        ImportError: there is no libudev.
        OSError: netlink is refused.
    """

    def __init__(self) -> None:
        import pyudev  # noqa: PLC0415 loads libudev, which a host may not have

        self._monitor = pyudev.Monitor.from_netlink(pyudev.Context(), source="kernel")
        self._monitor.filter_by("block", device_type="disk")
        # Without the right to it the default has to do; losses are noticed.
        with suppress(OSError):
            self._monitor.set_receive_buffer_size(BUFFER_BYTES)
        self._monitor.start()
        self._first: object | None = None
        self._lost = False

    def fileno(self) -> int:
        """Descriptor that becomes readable when uevents wait."""
        return int(self._monitor.fileno())

    def pending(self) -> bool:
        """Whether a uevent of a disk waits, or some were lost."""
        if self._first is None and not self._lost:
            self._first = self._receive()
        return self._first is not None or self._lost

    def take(self) -> frozenset[str] | None:
        """Names announced since the last call; None if the kernel had to drop some or there are too many."""
        names = set()
        for _ in range(_MOST_AT_ONCE):
            if not self.pending() or self._first is None:
                break
            names.add(kernel_name(str(getattr(self._first, "sys_name", ""))))
            self._first = None
        lost, self._lost = self._lost or self._first is not None, False
        return None if lost else frozenset(names)

    def _receive(self) -> object | None:
        try:
            device: object | None = self._monitor.poll(0)
        except OSError as error:
            if error.errno != errno.ENOBUFS:
                raise
            self._lost = True
            return None
        return device
