"""Run in a guest with NFS mounts: reads past the page cache that time themselves."""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
import threading
import time

BYTES, THREADS = 4096, 4
FAST_MS, SLOW_MS = 10, 1100


def timed_reads(file: int, reads: int, took_ns: list[int]) -> None:
    """Read one block after the other; add how long each took, in nanoseconds."""
    block = mmap.mmap(-1, BYTES)
    for number in range(reads):
        before_ns = time.monotonic_ns()
        os.preadv(file, [block], number * BYTES)
        took_ns.append(time.monotonic_ns() - before_ns)


def delay_network(ms: int) -> None:
    """Delay each packet of the loopback device, and so a call twice."""
    subprocess.run(f"tc qdisc replace dev lo root netem delay {ms}ms".split(), check=True)


def read_by_threads(file: int, reads: int) -> list[int]:
    """Read a file by several threads."""
    took_ns: list[int] = []
    threads = [threading.Thread(target=timed_reads, args=(file, reads, took_ns)) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return took_ns


def read_fast_and_slowly(path: str, fast: int, slow: int) -> list[int]:
    """Read a file so many times by each thread; opened once, since opens at the same time make servers refuse reads."""
    file = os.open(path, os.O_RDONLY | os.O_DIRECT)
    took_ns = read_by_threads(file, fast)
    if slow:
        delay_network(SLOW_MS)
        took_ns += read_by_threads(file, slow)
        delay_network(FAST_MS)
    os.close(file)
    return took_ns


def main() -> None:
    """Read files one after the other (FAST SLOW FILE...); print what each read took.

    The slow reads take longer than any pause of the emulated processors.
    """
    fast, slow = map(int, sys.argv[1:3])
    for path in sys.argv[3:]:
        took_ns = sorted(read_fast_and_slowly(path, fast, slow))
        sys.stdout.write(json.dumps({"witness": path, "took_ns": took_ns}) + "\n")


if __name__ == "__main__":
    main()
