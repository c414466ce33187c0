"""The verb: what it prints, its exit codes, and how long a change lasts."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from tests.fake_kernel import FakeKernel
from tests.unit.tune.hosts import contents, make_host, present
from tui.cli import run_cli

PATIENCE_S = 60.0


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeKernel:
    monkeypatch.setenv("LUNSCOPE_STATE_DIR", str(tmp_path / "state"))
    return make_host(tmp_path / "host")


def tune(kernel: FakeKernel, verb: str, *arguments: str) -> int:
    return run_cli(["tune", verb, "--sysfs", str(kernel.sysfs), *arguments])


def document(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


def test_list_groups_targets_with_one_value(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    kernel.set("sdb", "device/queue_depth", "8\n")
    assert tune(kernel, "list", "type:scsi") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["NAME", "VALUE", "ON", "DEFAULT", "LEGAL"]
    depths = [line.split() for line in lines if line.startswith("queue_depth ")]
    assert depths == [
        ["queue_depth", "64", "commands", "3:", "sda,", "sdc,", "sdd", "1..512"],
        ["queue_depth", "8", "commands", "sdb", "1..512"],
    ]
    assert max(map(len, lines)) <= 80


def test_get_has_a_line_for_each_target(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    (kernel.sysfs / kernel.disks["sdb"].folder / "queue/nr_requests").chmod(0o444)
    assert tune(kernel, "get", "nr_requests", "sda", "sdb") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("nr_requests: requests the queue takes")
    assert [line.split() for line in lines[3:]] == [
        ["sda", "128", "requests", "4..256"],
        ["r", "sdb", "128", "requests", "4..256"],
    ]


def test_json_is_one_document_with_all_that_is_known(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    (kernel.sysfs / kernel.disks["sda"].folder / "queue/nr_requests").chmod(0o444)
    assert tune(kernel, "get", "nr_requests", "sda", "--json") == 0
    found = document(capsys.readouterr().out)
    assert list(found) == ["schema", "tunables", "values"]
    assert found["schema"] == "lunscope.tune/1"
    assert found["tunables"] == [
        {
            "id": "nr_requests",
            "subject": "disk",
            "unit": "requests",
            "help": "requests the queue takes before submitters wait",
        }
    ]
    assert found["values"] == [
        {
            "tunable": "nr_requests",
            "target": "sda",
            "value": "128",
            "default": None,
            "legal": "4..256",
            "writable": False,
            "refusal": "read-only: the driver cannot change it",
        }
    ]


def test_names_are_listed_with_help(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    assert tune(kernel, "list", "--names") == 0
    lines = capsys.readouterr().out.splitlines()
    assert "queue_depth (disk, commands)" in lines
    assert max(map(len, lines)) <= 80


@pytest.mark.parametrize(
    ("arguments", "status", "words"),
    [
        (("set", "nr_requests=64", "--on", "sda"), 2, "exactly one of --for TIME, --keep, or -- COMMAND"),
        (("set", "nr_requests=64", "--on", "sda", "--keep", "--for", "9s"), 2, "exactly one of"),
        (("set", "nr_requests=64", "--on", "sda", "--keep", "--", "true"), 2, "exactly one of"),
        (("set", "nr_requests=64", "--on", "sda", "--for", "0"), 2, "write --for 60s"),
        (("set", "nr_requests=64", "--on", "sda", "--for", "soon"), 2, "is not a duration"),
        (("set", "nr_requests=64", "--on", "sda", "--", "/no/such/tool"), 2, "no such command: nothing was changed"),
        (("set", "nr_requests=64", "--keep"), 2, "--on"),
        (("set", "nr_requests=999", "--on", "sda", "--keep"), 2, "999 is not legal: 4..256"),
        (("set", "nr_requests=64", "--on", "sdz", "--keep"), 2, "no such disk here"),
        (("set", "nr_requests=64", "--on", "../../etc", "--keep"), 2, "no such disk here"),
        (("get", "nr_request"), 2, "is it nr_requests?"),
        (("get", "iopolicy"), 2, "nothing in this scope has it"),
        (("undo",), 1, "no change is in force"),
        (("undo", "--change", "7"), 2, "there is none"),
        (("save",), 2, "nothing to save"),
    ],
)
def test_mistakes_are_one_line_and_change_nothing(
    kernel: FakeKernel, capsys: pytest.CaptureFixture[str], arguments: tuple[str, ...], status: int, words: str
) -> None:
    before = contents(kernel)
    assert tune(kernel, *arguments) == status
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1
    assert words in printed.err
    assert contents(kernel) == before


def test_without_a_verb_of_its_own_it_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["tune"]) == 2
    assert capsys.readouterr().err == ("lunscope: say what: list, get, set, undo or save (see lunscope tune --help)\n")


def test_a_dry_run_prints_all_and_writes_nothing(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(kernel)
    assert (
        tune(kernel, "set", "scheduler=mq-deadline", "nr_requests=64", "--on", "sda", "--on", "sdb", "--dry-run") == 0
    )
    lines = capsys.readouterr().out.splitlines()
    assert [line.split() for line in lines[1:5]] == [
        ["scheduler", "sda", "none", "mq-deadline"],
        ["scheduler", "sdb", "none", "mq-deadline"],
        ["nr_requests", "sda", "128", "64"],
        ["nr_requests", "sdb", "128", "64"],
    ]
    assert lines[6].startswith("scheduler also sets anew: queue/nr_requests")
    assert lines[-1] == "4 values would change, 0 already as wanted"
    assert contents(kernel) == before


def test_kept_until_undone(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    before = contents(kernel)
    assert tune(kernel, "set", "queue_depth=8", "--on", "lun:mpatha", "--keep") == 0
    assert present(kernel, "device/queue_depth", "sda", "sdb", "sdc") == ["8", "8", "64"]
    assert "change 1 is kept" in capsys.readouterr().err
    assert tune(kernel, "undo", "--list") == 0
    listed = capsys.readouterr().out
    assert "kept  by root" in listed or "kept  by" in listed
    assert "queue_depth 64 -> 8 on sda, sdb" in listed
    assert tune(kernel, "save") == 0
    assert 'ATTR{device/queue_depth}="8"' in capsys.readouterr().out
    assert tune(kernel, "undo") == 0
    assert contents(kernel) == before


def test_undo_says_what_it_leaves_and_fails(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    tune(kernel, "set", "queue_depth=8", "--on", "sda", "--on", "sdc", "--keep")
    kernel.set("sdc", "device/queue_depth", "99\n")
    assert tune(kernel, "undo") == 1
    words = capsys.readouterr().err
    assert "not restored: queue_depth of sdc is 99, not 8 as it was set" in words
    assert "1 of 2 values are as before it; --force restores the rest, too" in words
    assert tune(kernel, "undo", "--force") == 0
    assert present(kernel, "device/queue_depth", "sda", "sdc") == ["64", "64"]


def test_undo_all(kernel: FakeKernel) -> None:
    before = contents(kernel)
    for depth in (8, 16):
        tune(kernel, "set", f"queue_depth={depth}", "--on", "sda", "--keep")
    assert tune(kernel, "undo", "--all") == 0
    assert contents(kernel) == before


@pytest.mark.parametrize(("command", "status"), [("exit 0", 0), ("exit 7", 7), ("kill -KILL $$", 137)])
def test_in_force_while_a_command_runs(
    kernel: FakeKernel, capfd: pytest.CaptureFixture[str], command: str, status: int
) -> None:
    file = kernel.sysfs / kernel.disks["sda"].folder / "queue/nr_requests"
    assert tune(kernel, "set", "nr_requests=64", "--on", "sda", "--", "sh", "-c", f"cat {file}; {command}") == status
    printed = capfd.readouterr()
    assert printed.out == "64\n"
    assert "change 1: restored" in printed.err
    assert present(kernel, "queue/nr_requests", "sda") == ["128"]


def test_a_command_runs_even_if_nothing_is_to_change(kernel: FakeKernel) -> None:
    assert tune(kernel, "set", "nr_requests=128", "--on", "sda", "--", "sh", "-c", "exit 3") == 3


def test_a_time_without_a_command(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    assert tune(kernel, "set", "nr_requests=64", "--on", "sda", "--for", "100ms") == 0
    assert "in force for 0.1s" in capsys.readouterr().err
    assert present(kernel, "queue/nr_requests", "sda") == ["128"]


_KILLED = """
for process in $(cat /proc/$PPID/task/*/children); do
    grep -qa "engine.tune.watch[d]og" /proc/$process/cmdline && kill -KILL $process && watchdog=$process
done
while [ -e /proc/$watchdog ]; do sleep 0.02; done
"""


def test_a_killed_watchdog_is_said_at_once_and_its_change_restored(
    kernel: FakeKernel, capfd: pytest.CaptureFixture[str]
) -> None:
    """The command waits until the end of the watchdog is noticed, and has the value for as long as it runs."""
    file = kernel.sysfs / kernel.disks["sda"].folder / "queue/nr_requests"
    assert tune(kernel, "set", "nr_requests=64", "--on", "sda", "--", "sh", "-c", f"{_KILLED} cat {file}") == 1
    printed = capfd.readouterr()
    assert printed.out == "64\n"
    said = [line.split("process")[0] for line in printed.err.splitlines()]
    assert said[1:] == [
        "lunscope: change 1: its watchdog has ended: ",
        "lunscope: change 1: its watchdog failed: ",
        "lunscope: change 1: restored",
    ]
    assert printed.err.count("was killed by SIGKILL") == 2
    assert present(kernel, "queue/nr_requests", "sda") == ["128"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_signals_restore(kernel: FakeKernel, number: signal.Signals) -> None:
    before = contents(kernel)
    command = [sys.executable, "-m", "tui", "tune", "set", "nr_requests=64", "--on", "type:scsi", "--for", "1h"]
    with subprocess.Popen(
        [*command, "--sysfs", str(kernel.sysfs)], stderr=subprocess.PIPE, text=True, cwd=Path(__file__).parents[3]
    ) as process:
        assert process.stderr is not None
        assert any("in force" in line for line in process.stderr)
        assert present(kernel, "queue/nr_requests", "sda", "sdd") == ["64", "64"]
        process.send_signal(number)
        assert process.wait(PATIENCE_S) == (-number if number == signal.SIGKILL else 128 + number)
    deadline_s = time.monotonic() + PATIENCE_S
    while contents(kernel) != before:
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


def test_sigterm_ends_the_command_and_restores(kernel: FakeKernel) -> None:
    before = contents(kernel)
    command = [
        sys.executable,
        "-m",
        "tui",
        "tune",
        "set",
        "nr_requests=64",
        "--on",
        "sda",
        "--sysfs",
        str(kernel.sysfs),
    ]
    with subprocess.Popen(
        [*command, "--", "sh", "-c", "echo runs; exec sleep 600"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=Path(__file__).parents[3],
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "runs\n"
        assert present(kernel, "queue/nr_requests", "sda") == ["64"]
        process.terminate()
        assert process.wait(PATIENCE_S) == 128 + signal.SIGTERM
    assert contents(kernel) == before


def test_save_writes_new_files_only(kernel: FakeKernel, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new"
    folder.mkdir()
    assert tune(kernel, "save", "nr_requests", "--on", "sda", "--write", str(folder)) == 0
    assert [path.name for path in folder.iterdir()] == ["99-lunscope-tune.rules"]
    assert 'ATTR{queue/nr_requests}="128"' in capsys.readouterr().out
    assert tune(kernel, "save", "nr_requests", "--on", "sda", "--write", str(folder)) == 2
    assert "nothing is replaced" in capsys.readouterr().err
