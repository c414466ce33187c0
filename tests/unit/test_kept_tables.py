"""Order, units and pinned rows are kept in a file, and pinned rows are found again after a restart."""

from __future__ import annotations

import json
from pathlib import Path
from queue import Queue

import pytest

from collectors.model import Device, Rows, Topology
from tui.kept import Choices, PinnedRow, TableChoices
from tui.screens.shared.kept_choices import PinnedFinder, pinned_rows

CHOSEN = TableChoices("iops", True, "decimal", True, (PinnedRow("sda:1", "sda", "naa.1"), PinnedRow("sdb:2", "sdb")))


def test_choices_are_written_once_they_change_and_read_again(tmp_path: Path) -> None:
    file = tmp_path / "new" / "tables.json"
    kept = Choices(file.parent).tables
    assert kept.write() == ""
    assert not file.exists()
    kept.put("overview.disks", CHOSEN)
    kept.put("paths.paths", TableChoices())
    assert kept.write() == ""
    assert json.loads(file.read_text()) == {
        "overview.disks": {
            "sort": "iops",
            "reverse": True,
            "units": "decimal",
            "idle_hidden": True,
            "pinned": [{"key": "sda:1", "name": "sda", "id": "naa.1"}, {"key": "sdb:2", "name": "sdb", "id": ""}],
        }
    }
    again = Choices(file.parent).tables
    assert (again.of("overview.disks"), again.of("paths.paths")) == (CHOSEN, None)
    again.put("overview.disks", TableChoices())
    again.write()
    assert json.loads(file.read_text()) == {}


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 5, "b": {"sort": 3}, "c": {"sort": "iops"}}',
        '{"b": {"pinned": [{"key": 5}]}, "c": {"sort": "iops", "d": 1}}',
    ],
)
def test_entries_of_a_wrong_form_are_left_out(text: str, tmp_path: Path) -> None:
    file = tmp_path / "tables.json"
    file.write_text(text)
    kept = Choices(file.parent).tables
    assert kept.problem == ""
    assert (kept.of("a"), kept.of("b"), kept.of("c")) == (None, None, TableChoices("iops"))


def test_a_file_that_cannot_be_read_is_named_and_not_replaced(tmp_path: Path) -> None:
    file = tmp_path / "tables.json"
    file.write_text("[1")
    kept = Choices(file.parent).tables
    assert str(file) in kept.problem
    kept.put("a", CHOSEN)
    assert str(file) in kept.write()
    assert file.read_text() == "[1"
    assert kept.of("a") == CHOSEN


def rows_of(**ids: str) -> tuple[Rows, Topology]:
    """Devices by name with their persistent ids; their keys are those of another boot."""
    devices = {f"{name}:9": Device(f"{name}:9", name, "disk", 8, 0, persistent_id=id_) for name, id_ in ids.items()}
    return Rows(tuple(devices), tuple(ids)), Topology(devices)


def test_a_pinned_device_is_found_by_its_key_then_its_id_then_its_name() -> None:
    finder = PinnedFinder(*rows_of(sda="naa.2", sdb="naa.1", vda="", sdc="naa.3", sdd="naa.3"))
    assert finder.key_of(PinnedRow("sda:9", "x", "x")) == "sda:9"
    assert finder.key_of(PinnedRow("sda:1", "sda", "naa.1")) == "sdb:9", "the name is another device's now"
    assert finder.key_of(PinnedRow("vda:1", "vda")) == "vda:9"
    assert finder.key_of(PinnedRow("sda:1", "sda")) is None, "sda has an id now: it may be another device"
    assert finder.key_of(PinnedRow("sdd:1", "sdd", "naa.3")) == "sdd:9", "paths share the id of their LUN"
    assert finder.key_of(PinnedRow("sdz:1", "sdz", "naa.3")) is None
    assert finder.key_of(PinnedRow("sdz:1", "sdz", "naa.7")) is None


def test_pinned_rows_are_kept_with_what_identifies_them() -> None:
    rows, topology = rows_of(sda="naa.2", vda="")
    assert pinned_rows(["vda:9", "sda:9", "gone"], rows, topology) == (
        PinnedRow("vda:9", "vda", ""),
        PinnedRow("sda:9", "sda", "naa.2"),
        PinnedRow("gone", "", ""),
    )


def test_what_cannot_be_written_is_told_from_a_thread_and_the_end_writes_what_is_left(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    told: Queue[str] = Queue()
    lost = Choices(tmp_path / "file")
    lost.tables.put("overview.disks", CHOSEN)
    lost.write_soon(told.put)
    assert "order, units and pinned rows kept until you leave: " in told.get(timeout=60)
    choices = Choices(tmp_path)
    choices.tables.put("overview.disks", CHOSEN)
    choices.close()
    assert Choices(tmp_path).tables.of("overview.disks") == CHOSEN
