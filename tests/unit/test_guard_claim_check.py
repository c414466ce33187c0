"""What is asked every second about stacks, on fake kernel trees; what the kernel answers is made up."""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from engine.errors import RefusedError
from engine.guard import claim_check
from engine.guard.claim_check import ClaimCheck
from engine.guard.claims import probes_of
from engine.guard.target import OpenTarget, TargetKind
from engine.hostfs.sysblock import BlockDevice, look_up, parse_device_number
from tests.unit.test_guard_usage import FakeHost


@dataclass
class Watched:
    """A target on a fake host, the devices others have claimed, and those that were asked about."""

    host: FakeHost
    check: ClaimCheck
    claimed: set[str] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)
    unreachable: set[str] = field(default_factory=set)
    now_s: float = 0.0

    def ask(self, device: BlockDevice, _devices: Path) -> bool:
        self.asked.append(device.name)
        if device.name in self.unreachable:
            raise OSError(errno.ENOENT, "No such file or directory")
        return device.name in self.claimed

    def run(self) -> list[str]:
        self.asked.clear()
        self.check.run()
        return sorted(set(self.asked))


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Watched]:
    def begin(host: FakeHost, name: str) -> Watched:
        usage = host.usage()
        number = parse_device_number(host.number(name))
        target = SimpleNamespace(
            name=name,
            kind=TargetKind.BLOCK,
            writable=True,
            identity=SimpleNamespace(rdev=number),
            held={number},
            refuse_new_use=lambda _census: None,
        )
        target.nodes = (target,)
        watched = Watched(host, ClaimCheck([cast(OpenTarget, target)], usage.roots))
        for question in ("is_claimed", "stays_claimed"):
            monkeypatch.setattr(claim_check, question, watched.ask)
        monkeypatch.setattr(claim_check, "is_gone", lambda _identity: False)
        clock: Any = SimpleNamespace(monotonic=lambda: watched.now_s)
        monkeypatch.setattr(claim_check, "time", clock)
        return watched

    return begin


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path)


def multipath(host: FakeHost) -> str:
    for disk in ("sda", "sdb", "sdc"):
        host.disk(disk, wwid="naa.600a")
    return host.disk("dm-0", on=("sda", "sdb"), dm_name="mpatha")


def unlink(host: FakeHost, disk: str, upper: str) -> None:
    (host.sysfs / f"devices/{disk}/holders/{upper}").unlink()
    (host.sysfs / f"devices/{upper}/slaves/{disk}").unlink()


def test_members_of_the_own_stack_are_not_asked_about(host: FakeHost, watch: Callable[..., Watched]) -> None:
    watched = watch(host, multipath(host))
    watched.claimed = {"sda", "sdb"}
    assert watched.run() == ["sdc"]
    watched.claimed |= {"sdc"}
    with pytest.raises(RefusedError, match="the same LUN by another path, /dev/sdc is claimed"):
        watched.run()


def test_a_path_that_leaves_the_map_may_stay_claimed_for_a_while(host: FakeHost, watch: Callable[..., Watched]) -> None:
    watched = watch(host, multipath(host))
    watched.claimed = {"sda", "sdb"}
    watched.run()
    unlink(host, "sdb", "dm-0")
    assert watched.run() == ["sdb", "sdc"]
    watched.now_s += 11
    with pytest.raises(RefusedError, match="/dev/sdb is claimed"):
        watched.run()


def test_once_free_it_is_a_path_like_others(host: FakeHost, watch: Callable[..., Watched]) -> None:
    watched = watch(host, multipath(host))
    watched.run()
    unlink(host, "sdb", "dm-0")
    watched.run()
    watched.claimed = {"sdb"}
    with pytest.raises(RefusedError, match="/dev/sdb is claimed"):
        watched.run()


def test_a_path_that_comes_into_the_map_is_the_maps(host: FakeHost, watch: Callable[..., Watched]) -> None:
    watched = watch(host, multipath(host))
    watched.run()
    watched.claimed = {"sdc"}
    host._link("sdc", "dm-0")
    assert watched.run() == []


def test_a_new_disk_of_the_lun_is_asked_about(host: FakeHost, watch: Callable[..., Watched]) -> None:
    watched = watch(host, multipath(host))
    watched.run()
    host.disk("sdd", wwid="naa.600a")
    assert watched.run() == ["sdc", "sdd"]


def test_what_cannot_be_asked_about_is_refused_after_a_time(host: FakeHost, watch: Callable[..., Watched]) -> None:
    watched = watch(host, multipath(host))
    watched.unreachable = {"sdc"}
    watched.run()
    watched.now_s += 11
    with pytest.raises(RefusedError, match="cannot be asked whether /dev/sdc"):
        watched.run()


def asked_of(host: FakeHost, name: str) -> list[list[str]]:
    device = look_up(host.sysfs, parse_device_number(host.number(name)) or 0)
    assert device is not None
    return [[asked.name for asked in probe.asked] for probe in probes_of(host.usage(), device, {device.number})]


def test_partitions_are_asked_about_where_they_overlap(host: FakeHost) -> None:
    for disk in ("sda", "sdb"):
        host.disk(disk, wwid="naa.600a")
        host.partition(disk, f"{disk}1", 1, 40)
        host.partition(disk, f"{disk}2", 41, 40)
    host.partition("sda", "sda3", 30, 5)
    assert asked_of(host, "sda1") == [["sda3"], ["sdb1"]]
    assert asked_of(host, "sda2") == [["sdb2"]]
    assert asked_of(host, "sda") == [["sdb"]]


def test_members_by_other_paths_are_asked_about(host: FakeHost) -> None:
    for disk in ("sda", "sdb"):
        host.disk(disk, wwid="naa.600a")
        host.partition(disk, f"{disk}1", 1, 40)
    host.disk("md0", on=("sda1",))
    host.disk("dm-0", on=("md0",))
    assert asked_of(host, "dm-0") == [["sdb1"]]
