"""Every table of a report comes from a recording as it came from the host."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from threading import Event as StopFlag

import pytest

from collectors.reports.report import ReportOptions, report_json, report_text
from collectors.session.writer import SessionWriter
from collectors.sources.live import WHOLE_TOPOLOGY_S, LiveSource
from tests.fake_kernel import FakeKernel
from tests.fake_storage import FakeScsi, add_tape
from tui.cli import run_cli

BUSY = (100, 0, 800, 400, 0, 0, 0, 0, 0, 300, 400, 0, 0, 0, 0, 0, 0)


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Path, list[str], list[str]]:
    """A recording of an interval with I/O on one path and a tape, with what live reports said of it."""
    kernel = FakeKernel(tmp_path)
    FakeScsi(kernel, hosts=2, luns=1).build()
    add_tape(kernel, 0)
    kernel.set("sda", "device/ioerr_cnt", "0x2\n")
    source = LiveSource(0.1, kernel.procfs, kernel.sysfs, "kernel", first_topology_s=WHOLE_TOPOLOGY_S)
    steps = source.steps(StopFlag())
    taken = [next(steps)]
    for name in ("sda", "dm-0"):
        kernel.count(name, BUSY)
    kernel.write_diskstats()
    kernel.set_class("scsi_tape", "st0", "stats/write_cnt", "5")
    taken += itertools.islice(steps, 2)
    source.close()
    file = tmp_path / "a.luns"
    with SessionWriter(file) as writer:
        for step in taken:
            writer.write(step.current)
    options = ReportOptions(("disks", "paths", "hbas", "tapes"))
    return file, list(report_json(taken, options)), list(report_text(taken, options))


def test_json_is_the_same(recorded: tuple[Path, list[str], list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    file, live, _ = recorded
    assert run_cli(["report", "-d", "-L", "-H", "-t", "--json", "--from", str(file)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed == live
    first = json.loads(printed[0])
    assert [row["name"] for table in ("disks", "paths", "hbas", "tapes") for row in first[table]] == [
        "dm-0", "sda", "sdb", "host0", "host1", "st0",
    ]  # fmt: skip
    disk, path, port = (first[table][0] for table in ("disks", "paths", "hbas"))
    assert path["iops"] == port["iops"] == disk["iops"] > 0
    assert (path["lun"], path["marginal"], path["policy"]) == ("mpath0", None, "")


def test_text_is_the_same(recorded: tuple[Path, list[str], list[str]], capsys: pytest.CaptureFixture[str]) -> None:
    file, _, live = recorded
    assert run_cli(["report", "-d", "-L", "-H", "-t", "--from", str(file)]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed == live
    assert sum(line.startswith("Average:") for line in printed) == 8


def test_scan_is_that_of_the_recording(
    recorded: tuple[Path, list[str], list[str]], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_cli(["scan", "--from", str(recorded[0])]) == 0
    printed = capsys.readouterr().out
    assert "mpath0 (dm-0)" in printed
    assert "tape st0" in printed


@pytest.mark.parametrize(
    ("given", "said"),
    [("a.luns", "a.luns is a file: read a recording with --from FILE"), ("b.luns", "'b.luns' is not a number")],
)
def test_a_file_in_place_of_the_interval_is_answered_with_the_option(
    given: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.luns").touch()
    monkeypatch.chdir(tmp_path)
    assert run_cli(["report", given]) == 2
    assert said in capsys.readouterr().err
    assert run_cli(["report", "x" * 5000]) == 2
