"""The guard on real partitions, dm, md, LVM, bcache and paths of LUNs: what is in use by any way, and what is not."""

from __future__ import annotations

import json
import sys

import pytest

from tests import needs
from tests.lab.guard_stacks import ACCEPTED
from tests.lab.guest import run_in_guest

pytestmark = [
    needs.guest,
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the guest has Python 3.11, whose packages are needed"),
]


def said(topology: str, what: str, *options: str) -> dict[str, str]:
    text = run_in_guest(topology, f"python3 -m tests.lab.guard_stacks {what}", *options)
    found: dict[str, str] = next(json.loads(line) for line in text.splitlines() if line.startswith("{"))
    return found


def test_paths_of_a_lun_without_a_map() -> None:
    found = said("scsi-mp", "bare", "-e", "MPATH=none")
    accepted = {"free", "all four", "other LUN", "the partition beside it", "free again"}
    assert {case: found[case] for case in accepted} == dict.fromkeys(accepted, ACCEPTED)
    assert {case for case, text in found.items() if text == ACCEPTED} == accepted
    assert " carries" not in found["disk of a claimed partition"].partition("claimed by the kernel")[0]
    for case in found.keys() - accepted - {"disk of a claimed partition"}:
        assert "is in use: the same LUN by another path, /dev/sd" in found[case], case
        assert "is claimed by the kernel (O_EXCL: busy)" in found[case], case
    assert found["the same partition"].startswith("/dev/sda1 is in use")


@pytest.mark.parametrize("topology", ["scsi-mp", "lio-alua"])
def test_paths_under_a_map(topology: str) -> None:
    found = said(topology, "mapped")
    accepted = {"map", "a path leaves and returns", "map without a path"}
    assert {case: found[case] for case in accepted} == dict.fromkeys(accepted, ACCEPTED)
    assert {case for case, text in found.items() if text == ACCEPTED} == accepted
    assert "is held by /dev/dm-" in found["path"]
    assert "is claimed by the kernel" in found["map, mounted unseen"]
    for case in ("map, path outside claimed", "watched"):
        assert "is in use: the same LUN by another path, /dev/sd" in found[case], case
    assert "(beside)" in found["map, another map on its path"]


def test_volumes_over_volumes() -> None:
    found = said("stack", "stacks")
    accepted = {case for case, text in found.items() if text == ACCEPTED}
    free = {"/dev/md1", "/dev/vg/striped", "/dev/vg/thin", "/dev/mapper/stripe", "/dev/mapper/flaky"}
    assert accepted == {*free, "/dev/bcache0", "/dev/mapper/cached", "volume beside it"}
    for case in ("held md", "held dm", "member of md1", "member of dm-stripe", "member of bcache0", "physical volume"):
        assert " held by " in found[case], case
    for case in ("volume, mounted unseen", "md, mounted unseen"):
        assert "is claimed by the kernel" in found[case], case
