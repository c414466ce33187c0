"""Run in a guest with two CPUs: what exact time makes of a CPU that leaves, a clock that steps, a disk that vanishes.

Prints one JSON document. The last step locks the kernel down, which only a boot undoes.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from engine import _native
from tests.lab.count_exactly import BYTES, READS, dd, settled

CPU = Path("/sys/devices/system/cpu/cpu1/online")
LOCKDOWN = Path("/sys/kernel/security/lockdown")
HOUR_S = 3600.0
SLOW = ("scsi_debug", "delay=0", "ndelay=900000000", "dev_size_mb=8", "per_host_store=1")
"""A disk whose I/Os take 0.9 s each."""
PATIENCE_S = 60.0


def read(device: str) -> None:
    dd(f"if={device}", "of=/dev/null", "iflag=direct", f"count={READS}")


def row(tracer: _native.BlockTracer, name: str) -> dict[str, int]:
    values = settled(tracer)
    return dict(zip(_native.TRACE_COLUMNS, values[tracer.names().index(name)], strict=True))


def in_driver_of(tracer: _native.BlockTracer, name: str) -> int:
    values, names = tracer.read(), tracer.names()
    return int(values[names.index(name), _native.TRACE_COLUMNS.index("in_driver_now")]) if name in names else 0


def wait_for(happened: Callable[[], bool]) -> bool:
    deadline_s = time.monotonic() + PATIENCE_S
    while not happened() and time.monotonic() < deadline_s:
        time.sleep(0.05)
    return happened()


def with_a_cpu_less(device: str) -> dict[str, int]:
    """Counters after as many reads before, while and after the second CPU is away."""
    tracer = _native.BlockTracer()
    read(device)
    CPU.write_text("0")
    read(device)
    CPU.write_text("1")
    read(device)
    return row(tracer, Path(device).name)


def with_a_stepping_clock(device: str) -> list[dict[str, object]]:
    """Rows of the device in a report during which the clock goes back an hour and on again."""
    command = [sys.executable, "-m", "tui", "report", "--json", "--tier", "exact", "2", "4"]
    rows = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as report:
        assert report.stdout is not None
        for tick, line in enumerate(report.stdout):
            rows += [found for found in json.loads(line)["disks"] if found["name"] == Path(device).name]
            time.clock_settime(time.CLOCK_REALTIME, time.time() + (-HOUR_S, HOUR_S)[tick % 2])
            read(device)
    return rows


def sd_disks() -> set[str]:
    return {disk.name for disk in Path("/sys/block").glob("sd*")}


def slow_disk() -> str:
    """Make a disk that is slow, with its module loaded by this call."""
    before = sd_disks()
    subprocess.run(["modprobe", *SLOW], check=True)
    assert wait_for(lambda: bool(sd_disks() - before))
    subprocess.run(["udevadm", "settle"], check=True)
    return (sd_disks() - before).pop()


def with_a_disk_that_vanishes() -> dict[str, object]:
    """What is known of a disk that is taken away with I/Os in flight, and of the one that comes after it."""
    tracer = _native.BlockTracer()
    name = slow_disk()
    reader = subprocess.Popen(["dd", f"if=/dev/{name}", "of=/dev/null", "iflag=direct", f"bs={BYTES}", "count=100"])
    under_way = wait_for(lambda: in_driver_of(tracer, name) > 0)
    Path("/sys/block", name, "device/delete").write_text("1")
    # It ends with an error or as at the end of the disk, as the kernel likes.
    reader.wait()
    gone = row(tracer, name)
    subprocess.run(["modprobe", "-r", "scsi_debug"], check=True)
    return {"under_way": under_way, "gone": gone, "losses": tracer.losses()}


NULL_DISKS = Path("/sys/kernel/config/nullb")


@contextmanager
def null_disk(name: str) -> Iterator[str]:
    """Make a disk of that name where the kernel lets such disks be named; its number is the lowest that is free."""
    folder = NULL_DISKS / name
    folder.mkdir()
    before = set(Path("/sys/block").iterdir())
    try:
        (folder / "power").write_text("1")
        (made,) = set(Path("/sys/block").iterdir()) - before
        yield made.name
    finally:
        folder.rmdir()


def with_a_number_used_again() -> list[dict[str, object]]:
    """Two disks, of which the second gets the number and the queue of the first: name, number, whether it is known."""
    found: list[dict[str, object]] = []
    with closing(_native.BlockTracer()) as tracer:
        for name in ("first", "second"):
            with null_disk(name) as disk:
                tracer.read()
                read(f"/dev/{disk}")
                tracer.read()
                number = Path("/sys/block", disk, "dev").read_text()
                found.append({"disk": disk, "number": number, "is_known": disk in tracer.names()})
    return found


WITHOUT_MEMORY = (
    *("env", "HOME=/tmp"),
    *("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"),
    *("--inh-caps=+bpf,+perfmon", "--ambient-caps=+bpf,+perfmon"),
    *("prlimit", "--memlock=65536:65536"),
)
"""The rights that exact time needs, but not that to lock more memory, as which old kernels count BPF maps."""


def without_memory() -> dict[str, str]:
    """What doctor says where the kernel may refuse maps for memory."""
    return exact_time_of(lunscope("doctor", before=WITHOUT_MEMORY))


def exact_time_of(doctor: dict[str, Any]) -> dict[str, str]:
    found: dict[str, str] = next(check for check in doctor["checks"] if check["id"] == "exact time")
    return found


def locked_down() -> dict[str, object]:
    """What doctor and a report say of a kernel in confidentiality mode."""
    if not LOCKDOWN.exists():
        subprocess.run(["mount", "-t", "securityfs", "securityfs", LOCKDOWN.parent], check=True)
    LOCKDOWN.write_text("confidentiality")
    return {
        "doctor": exact_time_of(lunscope("doctor")),
        "tier": lunscope("report", "1", "1")["tier"],
    }


def lunscope(verb: str, *arguments: str, before: tuple[str, ...] = ()) -> dict[str, Any]:
    """First document that a verb prints, started by what comes before it."""
    command = [*before, sys.executable, "-m", "tui", verb, "--json", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)
    document: dict[str, Any] = json.loads(done.stdout.splitlines()[0])
    return document


def with_form() -> bool:
    """Whether atomic operations have results here."""
    with closing(_native.BlockTracer()) as tracer:
        return tracer.form()[1]


def main(device: str) -> None:
    document = {
        "fetch": with_form(),
        "memory": without_memory(),
        "cpu": with_a_cpu_less(device),
        "clock": with_a_stepping_clock(device),
        "vanished": with_a_disk_that_vanishes(),
        "again": with_a_number_used_again(),
        "locked": locked_down(),
    }
    sys.stdout.write(json.dumps(document) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
