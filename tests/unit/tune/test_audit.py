"""Changes of tunables as events of whoever records."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from collectors.sampling.reading import Guarded
from collectors.tune_changes import TuneChangesCollector
from engine.events import Event, EventKind
from engine.tune.audit import AUDIT_FILE, MOST_BYTES
from engine.tune.change import undo
from engine.tune.journal import Journal
from engine.tune.tree import KernelTree
from tests.fake_kernel import FakeKernel
from tests.unit.tune.hosts import change, make_host


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKernel:
    monkeypatch.setenv("LUNSCOPE_STATE_DIR", str(tmp_path / "state"))
    return make_host(tmp_path / "host")


@pytest.fixture
def tree(kernel: FakeKernel) -> Iterator[KernelTree]:
    with KernelTree(kernel.sysfs) as tree:
        yield tree


def events(collector: TuneChangesCollector) -> list[Event]:
    return list(Guarded(collector).read(0).events)


def test_each_state_of_a_change_is_an_event_with_who_and_what(kernel: FakeKernel, tree: KernelTree) -> None:
    collector, journal = TuneChangesCollector(str(kernel.sysfs)), Journal()
    assert events(collector) == []
    made = change(tree, journal, ["nr_requests=64"], "sda")
    (held,) = events(collector)
    assert held.kind is EventKind.TUNE
    assert held.text.startswith("tune change 1 held: nr_requests 128 -> 64 on sda, by ")
    assert {key: held.data[key] for key in ("change", "state", "settings", "uid", "pid")} == {
        "change": 1,
        "state": "held",
        "settings": "nr_requests=64",
        "uid": os.getuid(),
        "pid": os.getpid(),
    }
    made.end()
    change(tree, journal, ["queue_depth=8"], "sda", "sdb", keep=True)
    undo(tree, journal, journal.read(2))
    states = [event.data["state"] for event in events(collector)]
    assert states == ["reverted", "kept", "undone"]
    assert events(collector) == []


def test_changes_before_the_recording_and_of_other_trees_are_none(
    kernel: FakeKernel, tree: KernelTree, tmp_path: Path
) -> None:
    change(tree, Journal(), ["nr_requests=64"], "sda", keep=True)
    collector = TuneChangesCollector(str(kernel.sysfs))
    other = make_host(tmp_path / "other")
    with KernelTree(other.sysfs) as elsewhere:
        change(elsewhere, Journal(), ["nr_requests=64"], "sda", keep=True)
    assert events(collector) == []


def test_a_long_file_is_replaced_and_followed(kernel: FakeKernel, tree: KernelTree) -> None:
    journal = Journal()
    change(tree, journal, ["nr_requests=64"], "sda", keep=True)
    path = journal.folder / AUDIT_FILE
    with path.open("ab") as file:
        file.write(b"damaged\n" * (MOST_BYTES // 8 + 1))
    collector = TuneChangesCollector(str(kernel.sysfs))
    change(tree, journal, ["nr_requests=32"], "sda", keep=True)
    assert path.stat().st_size < 10_000
    assert [event.data["change"] for event in events(collector)] == [2]


def test_damaged_and_incomplete_lines_are_skipped(kernel: FakeKernel, tree: KernelTree) -> None:
    collector, journal = TuneChangesCollector(str(kernel.sysfs)), Journal()
    journal.open()
    with (journal.folder / AUDIT_FILE).open("ab") as file:
        file.write(b'\xff\n{}\n[]\n{"time_ns": "x"}\nincomplete')
    assert events(collector) == []
    with (journal.folder / AUDIT_FILE).open("ab") as file:
        file.write(b"\n")
    change(tree, journal, ["nr_requests=32"], "sda", keep=True)
    assert [event.data["change"] for event in events(collector)] == [1]
