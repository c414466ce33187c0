"""Bad input of any verb is exit code 2 with one line, and nothing is written; failures of the host are 1."""

from __future__ import annotations

import errno
import shlex
from pathlib import Path

import pytest

from engine.config import SCRATCH_ENV
from engine.errors import LunscopeError, UsageError, unusable
from tests.golden import assert_golden
from tui.cli import run_cli

GOLDEN = sorted(Path(__file__).parent.glob("golden/commands/*.txt"))
RECORDING = Path(__file__).parents[1] / "recordings" / "load.luns"
TWO_LOADS = (
    "[global]\nfilename=/dev/x\ndirect=1\nioengine=io_uring\nruntime=5\ntime_based\nrw=randread\n[a]\n[b]\nbs=8k\n"
)

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


@pytest.mark.slow
@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_command_lines_are_refused_as_was_accepted(
    path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They end before anything is measured or written; `file`, `two.fio` and `load.luns` are there."""
    monkeypatch.setenv(SCRATCH_ENV, str(folder / "scratch"))
    Path("file").write_bytes(bytes(1 << 20))
    Path("two.fio").write_text(TWO_LOADS)
    Path("load.luns").write_bytes(RECORDING.read_bytes())
    begun = {path: path.read_bytes() for path in Path().iterdir()}

    def say(line: str) -> str:
        code = run_cli(shlex.split(line))
        out, err = capsys.readouterr()
        assert out == "", line
        assert all(said.startswith("lunscope: ") for said in err.splitlines()), f"{line}: {err}"
        assert {path: path.read_bytes() for path in Path().iterdir()} == begun, line
        return f"exit {code}\n{err.rstrip()}"

    assert_golden(path, say)


@pytest.mark.parametrize("line", ["probe --user nobody_", "fleet watch --hosts h[1-9999999]"])
def test_what_depends_on_the_host_is_refused_in_one_line(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused(line, capsys)


@pytest.mark.parametrize(
    ("number", "code"), [(errno.ENOENT, 2), (errno.EACCES, 2), (errno.ELOOP, 2), (errno.ENOSPC, 1), (errno.EIO, 1)]
)
def test_who_is_to_blame(number: int, code: int) -> None:
    error = unusable("x", OSError(number, ""))
    assert (error.exit_code, isinstance(error, UsageError)) == (code, code == 2)
    assert LunscopeError.exit_code == 1
