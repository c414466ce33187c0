"""Files and devices that cannot be read without blocking."""

from __future__ import annotations

import errno
import mmap
import os

_PAGE_BYTES = 4096


def reads_block(fd: int) -> bool:
    """Whether the filesystem or driver refuses RWF_NOWAIT (preadv2(2)), as tmpfs and zram do, direct I/O or not.

    A ring must hand every such read to a kernel thread, where it is 3 to 15 times slower than a thread that reads by
    itself. One page is read, if it is in memory.
    """
    with mmap.mmap(-1, _PAGE_BYTES) as page:
        try:
            os.preadv(fd, [page], 0, os.RWF_NOWAIT)
        except OSError as error:
            return error.errno == errno.EOPNOTSUPP
    return False
