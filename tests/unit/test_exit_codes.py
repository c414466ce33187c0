"""Bad input of any verb is exit code 2 with one line, and nothing is written; failures of the host are 1."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from engine.errors import LunscopeError, UsageError, unusable
from tui.cli import run_cli

GIVEN = {
    "job file": ("run {} --headless", "run {} --json", "sweep {} --vary qd=1,2", "fleet run {} --hosts localhost"),
    "session": (
        "report --from {}",
        "report --from {} --json",
        "export {} --format csv",
        "compare {} {}",
        "scan --from {}",
    ),
    "document": ("compare {} {} --json",),
    "target": ("verify {}", "run --headless --rw randread --runtime 1s --target {}"),
}
"""Command lines by what they are to be given; `{}` is that."""
DAMAGED = {
    "job file": b"[job\n",
    "session": b"SQLite format 3\0" + bytes(4096),
    "document": b'{"schema": ',
    "target": b"",
}
OF_OPTIONS = (
    *("run --bs 3x", "run --qd 0 --headless", "run --rate=-1", "run --save-job none/x.toml --size 1m"),
    *("sweep --vary qd", "sweep --vary nothing=1", "sweep --slo p99 --vary qd=1", "report 0", "report x"),
    *("export x.luns --format nothing", "record", "record -o none/x.luns --duration 1", "record -o x --interval 0"),
    *("metrics", "metrics --listen nothing", "metrics --textfile none/x.prom", "tune get nothing", "tune set qd=1"),
    *("fleet watch --hosts h[1-9999999]", "scan --sysfs none", "doctor --procfs none", "watch --interval x", "agent"),
    *("replay x.luns", "compare x.luns", "verify", "nothing", "report --nothing", "tune save", "probe --user nobody_"),
)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return tmp_path


def refused(line: str, capsys: pytest.CaptureFixture[str]) -> str:
    """The one line with which a command ends."""
    before = sorted(Path().rglob("*"))
    code = run_cli(line.split())
    said = capsys.readouterr()
    assert (code, said.out) == (2, ""), said.err
    assert said.err.startswith("lunscope: ")
    assert said.err.count("\n") == 1
    assert sorted(Path().rglob("*")) == before
    return said.err


@pytest.mark.parametrize("state", ["missing", "folder", "damaged"])
@pytest.mark.parametrize(("kind", "line"), [(kind, line) for kind, lines in GIVEN.items() for line in lines])
def test_a_file_that_cannot_be_read(kind: str, line: str, state: str, capsys: pytest.CaptureFixture[str]) -> None:
    given = Path("given.toml" if kind == "job file" else "given")
    if state == "folder":
        given.mkdir()
    elif state == "damaged" and kind in DAMAGED:
        given.write_bytes(DAMAGED[kind])
    assert str(given) in refused(line.replace("{}", str(given)), capsys)


@pytest.mark.parametrize("line", OF_OPTIONS)
def test_a_wrong_option(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused(line, capsys)


@pytest.mark.parametrize(
    ("number", "code"), [(errno.ENOENT, 2), (errno.EACCES, 2), (errno.ELOOP, 2), (errno.ENOSPC, 1), (errno.EIO, 1)]
)
def test_who_is_to_blame(number: int, code: int) -> None:
    error = unusable("x", OSError(number, ""))
    assert (error.exit_code, isinstance(error, UsageError)) == (code, code == 2)
    assert LunscopeError.exit_code == 1
