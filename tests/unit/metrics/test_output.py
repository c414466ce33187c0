"""The file, the addresses, and what the verb refuses."""

from __future__ import annotations

import fcntl
import stat
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from engine.errors import LunscopeError, RefusedError, UsageError
from tests.fake_kernel import FakeDisk, FakeKernel, busy_counters
from tui.commands.metrics import command
from tui.headless.metrics import MARK, replace_textfile, require_textfile
from tui.headless.metrics_server import ListenAddress, make_app, parse_address


def run(*arguments: str | Path) -> str:
    done = CliRunner().invoke(command, [str(one) for one in arguments], standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.output


@pytest.fixture
def roots(tmp_path: Path) -> list[str]:
    kernel = FakeKernel(tmp_path)
    kernel.add(
        *(FakeDisk(f"sd{one}", 8, 16 * number, counters=busy_counters(number)) for number, one in enumerate("abc"))
    )
    return ["--procfs", str(kernel.procfs), "--sysfs", str(kernel.sysfs)]


def test_once_writes_the_counters_of_the_kernel(tmp_path: Path, roots: list[str]) -> None:
    file = tmp_path / "a.prom"
    run("--textfile", file, "--once", "--node-names", *roots)
    text = file.read_text()
    assert text.startswith(MARK.decode())
    for number, name in enumerate(("sda", "sdb", "sdc")):
        assert f'node_disk_reads_completed_total{{device="{name}"}} {busy_counters(number)[0]}\n' in text
    assert stat.S_IMODE(file.stat().st_mode) == 0o644
    run("--textfile", file, "--once", *roots)
    assert "node_disk" not in file.read_text()
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []


def test_a_failed_write_leaves_the_former_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.prom"
    replace_textfile(file, b"former 1\n")
    before = file.stat().st_ino

    def fail(_path: Path, _to: Path) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fail)
        with pytest.raises(OSError, match="No space"):
            replace_textfile(file, b"new 1\n")
    assert file.read_bytes() == MARK + b"former 1\n"
    assert [path.name for path in tmp_path.iterdir()] == ["a.prom"]
    with file.open("rb") as reader:
        replace_textfile(file, b"new 1\n")
        assert reader.read() == MARK + b"former 1\n"
    assert file.stat().st_ino != before


def test_files_of_others_are_not_replaced(tmp_path: Path) -> None:
    foreign, link = tmp_path / "foreign.prom", tmp_path / "link.prom"
    foreign.write_text("other 1\n")
    link.symlink_to(foreign)
    for path in (foreign, link):
        with pytest.raises(RefusedError, match="not written by lunscope metrics"):
            require_textfile(path)
    with pytest.raises(UsageError, match=r"only names that end in \.prom"):
        require_textfile(tmp_path / "a.txt")
    with pytest.raises(UsageError, match="is not a folder"):
        require_textfile(tmp_path / "none/a.prom")


def test_addresses() -> None:
    assert parse_address("9100") == ListenAddress("127.0.0.1", 9100)
    assert parse_address("[::1]:9100").local
    assert not parse_address("0.0.0.0:9100").local
    assert not parse_address("[::]:9100").local
    assert parse_address("unix:/run/a").path == parse_address("/run/a").path == Path("/run/a")
    for wrong in ("", "x", "70000", "-1", "localhost:9100", "1.2.3:80", ":9100", "unix:"):
        with pytest.raises(UsageError, match="give PORT, ADDRESS:PORT"):
            parse_address(wrong)


def test_more_series_than_allowed_are_refused_with_their_number(tmp_path: Path, roots: list[str]) -> None:
    file = tmp_path / "a.prom"
    with pytest.raises(UsageError, match=r"\d+ time series, more than 20: .*--max-series \d+"):
        run("--textfile", file, "--once", "--node-names", "--max-series", "20", *roots)
    assert not file.exists()


def test_without_prometheus_client_the_error_names_the_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(LunscopeError, match=r"pip install '\.\[metrics\]', or use --textfile"):
        make_app(lambda: b"")


def test_what_a_killed_one_left_beside_the_file_is_removed_by_the_next(tmp_path: Path) -> None:
    file = tmp_path / "lunscope.prom"
    left, empty, others, held = (tmp_path / f".{file.name}.{name}.new" for name in ("812", "7", "x", "9"))
    left.write_bytes(MARK + b"half a fig")
    empty.touch()
    others.write_bytes(MARK)
    strange = tmp_path / f".{file.name}.6.new"
    strange.write_text("of somebody else")
    with held.open("wb") as writing:
        fcntl.flock(writing, fcntl.LOCK_EX)
        require_textfile(file)
    assert sorted(tmp_path.iterdir()) == sorted([others, held, strange])
    replace_textfile(file, b"figure 1\n")
    assert file.read_bytes() == MARK + b"figure 1\n"
    require_textfile(file)
    assert sorted(tmp_path.iterdir()) == sorted([others, strange, file])
