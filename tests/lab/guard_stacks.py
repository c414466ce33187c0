"""What the guard says of real partitions, dm, md, LVM, bcache and paths of LUNs; run in a guest, prints JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.errors import LunscopeError
from engine.guard import UseMonitor, open_targets
from engine.guard.claim_check import ClaimCheck
from engine.job.spec import JobSpec, Knobs, Permissions, TargetSpec
from engine.job.target_text import parse_lun

ACCEPTED = "accepted"
WATCHED_S = 6.0
REFUSED_WITHIN_S = 60.0


def run(command: str) -> str:
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout.strip()


def job(*nodes: str) -> tuple[JobSpec, Permissions]:
    spec = TargetSpec(nodes[0]) if len(nodes) == 1 else parse_lun(",".join(nodes))
    return JobSpec((spec,), Knobs(read_pct=50.0)), Permissions(frozenset(nodes), destroy_data=True)


def verdict(*nodes: str) -> str:
    """Open for writing, check once more as before the first write and as every second, and let go.

    udev reads the partitions of a disk again whenever a writer closes it: their nodes are away for a moment.
    """
    deadline_s = time.monotonic() + REFUSED_WITHIN_S
    while not all(map(os.path.exists, nodes)) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    run("udevadm settle")
    try:
        (target,) = open_targets(*job(*nodes))
    except LunscopeError as error:
        return str(error)
    try:
        target.recheck()
        ClaimCheck([target]).run()
    except LunscopeError as error:
        return f"afterwards: {error}"
    finally:
        target.close()
    return ACCEPTED


@contextmanager
def claim(node: str) -> Iterator[None]:
    fd = os.open(node, os.O_RDONLY | os.O_EXCL)
    try:
        yield
    finally:
        os.close(fd)


@contextmanager
def hidden_mount(node: str) -> Iterator[None]:
    """A filesystem that is in no mount table, held by an open file."""
    run(f"mkfs.ext4 -qF {node} 16M && mkdir -p /tmp/hidden && mount {node} /tmp/hidden")
    with Path("/tmp/hidden/file").open("w"):
        run("umount -l /tmp/hidden")
        yield
    time.sleep(1)


def watched(nodes: tuple[str, ...], meanwhile: Callable[[], None], for_s: float) -> str:
    """Watch a target as while it is written, and let something happen; why it would end."""
    (target,) = open_targets(*job(*nodes))
    monitor = UseMonitor()
    try:
        monitor.check([target])
        meanwhile()
        deadline_s = time.monotonic() + for_s
        while time.monotonic() < deadline_s:
            monitor.check([target])
            time.sleep(0.1)
    except LunscopeError as error:
        return str(error)
    finally:
        monitor.stop()
        target.close()
    return ACCEPTED


def paths_by_lun() -> list[list[str]]:
    """Nodes of the paths of each LUN that has several."""
    found = defaultdict(list)
    for disk in sorted(Path("/sys/block").glob("sd*"), key=lambda disk: (len(disk.name), disk.name)):
        found[(disk / "device/wwid").read_text()].append(f"/dev/{disk.name}")
    return [nodes for nodes in found.values() if len(nodes) > 1]


def bare_paths() -> dict[str, str]:
    """Paths of a LUN without a map over them."""
    (first, second, third, fourth), (other, *_) = paths_by_lun()[:2]
    found = {"free": verdict(first), "all four": verdict(first, second, third, fourth)}
    with claim(second):
        found["claimed by another path"] = verdict(first)
        found["path given, other claimed"] = verdict(first, third)
        found["other LUN"] = verdict(other)
    with hidden_mount(fourth):
        found["mounted by another path, unseen"] = verdict(first)
    run(f"wipefs -qa {first}; printf 'label: gpt\\nsize=100M\\nsize=100M\\n' | sfdisk -q {first}")
    for node in (second, third, fourth):
        run(f"blockdev --rereadpt {node}")
    run("udevadm settle")
    with claim(f"{second}1"):
        found["disk, partition claimed by another path"] = verdict(first)
        found["the same partition"] = verdict(f"{first}1")
        found["the partition beside it"] = verdict(f"{first}2")
    with claim(second):
        found["partition, disk claimed by another path"] = verdict(f"{first}1")
    with claim(f"{first}1"):
        found["disk of a claimed partition"] = verdict(first)
    run(f"partx -d {second}")
    with claim(f"{first}1"):
        found["path without partitions"] = verdict(second)
    found["free again"] = verdict(first)
    fds: list[int] = []
    found["watched"] = watched((first,), lambda: fds.append(os.open(third, os.O_EXCL)), REFUSED_WITHIN_S)
    os.close(fds[0])
    return found


def mapped_paths() -> dict[str, str]:
    """Paths under dm-multipath."""
    node = "/dev/mapper/mpatha"
    disk = Path("/sys/block", Path(node).resolve().name)
    paths = [f"/dev/{path.name}" for path in sorted((disk / "slaves").iterdir())]
    found = {"map": verdict(node), "path": verdict(paths[0])}
    with hidden_mount(node):
        found["map, mounted unseen"] = verdict(node)
    out = paths[-1]

    def flap() -> None:
        for _ in range(3):
            run(f"multipathd del path {Path(out).name}; sleep 1; multipathd add path {Path(out).name}; sleep 1")

    found["a path leaves and returns"] = watched((node,), flap, WATCHED_S)
    run(f"multipathd del path {Path(out).name}; udevadm settle")
    found["map without a path"] = verdict(node)
    with claim(out):
        found["map, path outside claimed"] = verdict(node)
    fds: list[int] = []
    found["watched"] = watched((node,), lambda: fds.append(os.open(out, os.O_EXCL)), REFUSED_WITHIN_S)
    os.close(fds[0])
    run(f"dmsetup create beside --table '0 2048 linear {paths[0]} 0'")
    found["map, another map on its path"] = verdict(node)
    run("dmsetup remove beside")
    return found


def stacks() -> dict[str, str]:
    """Volumes over volumes."""
    free = ("/dev/md1", "/dev/vg/striped", "/dev/vg/thin", "/dev/mapper/stripe", "/dev/mapper/flaky", "/dev/bcache0")
    found = {node: verdict(node) for node in (*free, "/dev/mapper/cached")}
    found["held md"] = verdict("/dev/md0")
    found["held dm"] = verdict("/dev/mapper/slow")
    members = {kind: next(Path(f"/sys/block/{kind}/slaves").iterdir()).name for kind in ("md0", "md1", "bcache0")}
    for kind, member in members.items():
        found[f"member of {kind}"] = verdict(f"/dev/{member}")
    parent = Path(f"/sys/class/block/{members['bcache0']}").resolve().parent.name
    found["disk of a partition under bcache"] = verdict(f"/dev/{parent}")
    physical = run("pvs --noheadings -o pv_name | awk '/sd/ { print $1; exit }'")
    found["physical volume"] = verdict(physical)
    with hidden_mount("/dev/vg/linear"):
        found["volume, mounted unseen"] = verdict("/dev/vg/linear")
        found["volume beside it"] = verdict("/dev/vg/striped")
    with hidden_mount("/dev/md1"):
        found["md, mounted unseen"] = verdict("/dev/md1")
    stripe = Path("/dev/mapper/stripe").resolve().name
    found["member of dm-stripe"] = verdict(f"/dev/{next(Path(f'/sys/block/{stripe}/slaves').iterdir()).name}")
    return found


if __name__ == "__main__":
    found = {"bare": bare_paths, "mapped": mapped_paths, "stacks": stacks}[sys.argv[1]]()
    sys.stdout.write(json.dumps(found) + "\n")
