"""Run in a guest: exact time while a CPU goes offline and comes back under load, and the event log of the same I/Os.

The CPU is offline when the programs are attached, too. Prints what tests.lab.exact_truth prints, and how often it came.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lab.exact_truth import compare

CPU = Path("/sys/devices/system/cpu/cpu1/online")


@contextmanager
def switching() -> Iterator[list[int]]:
    """Switch the CPU on and off for as long as the context lasts; the list gets what was switched."""
    over = threading.Event()
    switched: list[int] = []

    def switch() -> None:
        while not over.wait(0.2):
            switched.append(1 - int(CPU.read_text()))
            CPU.write_text(str(switched[-1]))

    thread = threading.Thread(target=switch)
    thread.start()
    try:
        yield switched
    finally:
        over.set()
        thread.join()
        CPU.write_text("1")


def main(device: str) -> None:
    CPU.write_text("0")
    found: list[int] = []

    @contextmanager
    def meanwhile() -> Iterator[None]:
        with switching() as switched:
            yield
        found.extend(switched)

    document = compare(device, "/sys", meanwhile)
    sys.stdout.write(json.dumps({**document, "came": sum(found)}) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
