"""A scope that is followed: devices that come later, values that drift, and one rule for a vendor and model."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from collectors.tune_changes import TuneChangesCollector
from engine.errors import LunscopeError
from engine.tune.follow import FollowedScope
from engine.tune.journal import Journal
from engine.tune.persist import configuration
from engine.tune.planned_writes import parse_settings
from engine.tune.record import State
from engine.tune.registry import BY_ID
from engine.tune.tree import KernelTree
from engine.tune.tunable import Target, TunedKind
from engine.tune.udev_rules import SavedSetting
from tests.fake_kernel import FakeKernel
from tests.unit.tune.hosts import WWID, make_host, present, scsi
from tui.cli import run_cli

PATIENCE_S = 60.0
NAMES = ("sda", "sdb", "sdc", "sdd")


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKernel:
    monkeypatch.setenv("LUNSCOPE_STATE_DIR", str(tmp_path / "state"))
    return make_host(tmp_path / "host")


@pytest.fixture
def tree(kernel: FakeKernel) -> Iterator[KernelTree]:
    with KernelTree(kernel.sysfs) as tree:
        yield tree


def test_a_lun_that_comes_later_gets_the_value_and_drift_is_said_once(
    kernel: FakeKernel, tree: KernelTree, tmp_path: Path
) -> None:
    events = TuneChangesCollector(str(kernel.sysfs))
    settings = parse_settings(["queue_depth=32"])
    followed = FollowedScope(tree, settings, ["vendor:ACME"], journal=Journal(tmp_path / "state/tune"))
    assert list(followed.look()) == ["queue_depth 64 -> 32 on sda, sdb, sdc and 1 more"]
    assert not list(followed.look())
    kernel.add(scsi("sde", 0, WWID[:-2] + "cc"))
    assert list(followed.look()) == ["queue_depth 64 -> 32 on sde"]
    kernel.set("sdb", "device/queue_depth", "7\n")
    assert list(followed.look()) == ["queue_depth of sdb has become 7, not 32 as it was set"]
    assert not list(followed.look())
    assert present(kernel, "device/queue_depth", *NAMES, "sde") == ["32", "7", "32", "32", "32"]
    texts = [event.text for event in events.read().events]
    assert len(texts) == 3
    assert "queue_depth of sdb has become 7" in texts[2]
    # The kernel lowers it on QUEUE FULL, and what is lower than it was set is restored.
    assert [record.state for record in followed.end()] == [State.REVERTED, State.REVERTED]
    assert present(kernel, "device/queue_depth", *NAMES, "sde") == ["64"] * 5


def test_a_scope_that_is_empty_for_now_is_waited_for(kernel: FakeKernel, tree: KernelTree, tmp_path: Path) -> None:
    settings = parse_settings(["queue_depth=32"])
    followed = FollowedScope(tree, settings, ["vendor:NEW"], journal=Journal(tmp_path / "state/tune"))
    assert not list(followed.look())
    kernel.add(scsi("sde", 0, device__vendor="NEW\n"))
    assert list(followed.look()) == ["queue_depth 64 -> 32 on sde"]
    followed.end()
    assert present(kernel, "device/queue_depth", "sde") == ["64"]


def test_the_verb_follows_until_a_signal(kernel: FakeKernel) -> None:
    words = ("tune", "set", "queue_depth=32", "--on", "vendor:ACME", "--follow", "--sysfs", str(kernel.sysfs))
    process = subprocess.Popen(
        [sys.executable, "-m", "tui", *words], stderr=subprocess.PIPE, text=True, env=dict(os.environ)
    )
    _wait_for(kernel, "sdd", "32")
    kernel.add(scsi("sde", 0, WWID[:-2] + "cc"))
    _wait_for(kernel, "sde", "32")
    process.send_signal(signal.SIGTERM)
    _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 143
    assert "queue_depth 64 -> 32 on sde" in errors
    assert present(kernel, "device/queue_depth", *NAMES, "sde") == ["64"] * 5


def _wait_for(kernel: FakeKernel, name: str, value: str) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while present(kernel, "device/queue_depth", name) != [value]:
        assert time.monotonic() < deadline_s, "it did not happen"
        time.sleep(0.02)


def test_it_is_not_kept(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["tune", "set", "queue_depth=32", "--on", "sda", "--follow", "--keep", "--sysfs", str(kernel.sysfs)]
    assert run_cli(words) == 2
    assert "`tune save --as-scope` is for later" in capsys.readouterr().err


def saved(tree: KernelTree, kernel: FakeKernel, values: dict[str, str]) -> list[SavedSetting]:
    depth = BY_ID["queue_depth"]
    return [
        SavedSetting(depth, Target(TunedKind.DISK, name, kernel.disks[name].folder), value)
        for name, value in values.items()
    ]


def test_one_rule_for_a_vendor_and_model(kernel: FakeKernel, tree: KernelTree) -> None:
    (file,) = configuration(tree, saved(tree, kernel, dict.fromkeys(NAMES, "32")), by_model=True).files
    rules = [line for line in file.text.splitlines() if not line.startswith("#")]
    assert rules == [
        'ACTION=="add|change", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", ATTRS{vendor}=="ACME", '
        'ATTRS{model}=="Array 9000", ATTR{device/queue_depth}="32"'
    ]
    assert "every LUN of such storage, also a later one: sda, sdb, sdc, sdd" in file.text


def test_one_rule_for_disks_that_differ_is_refused(kernel: FakeKernel, tree: KernelTree) -> None:
    with pytest.raises(LunscopeError, match=r"no rule of udev tells sda \(32\) from sdb \(64\)"):
        configuration(tree, saved(tree, kernel, {"sda": "32"}), by_model=True)
    kernel.set("sda", "device/model", 'odd "model"\n')
    (file,) = configuration(tree, saved(tree, kernel, {"sda": "64"}), by_model=True).files
    assert "ATTRS{model}" not in file.text
