"""The version where nothing is installed: a recording and a result go on without it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from collectors.session.reader import SessionReader
from collectors.session.writer import SessionWriter
from engine.version import UNKNOWN, version
from tests.session_samples import Machine
from tui.cli import run_cli


@pytest.fixture
def not_installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    version.cache_clear()
    yield
    version.cache_clear()


@pytest.mark.usefixtures("not_installed")
def test_a_checkout_that_is_not_installed_records(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with SessionWriter(tmp_path / "a.lun") as writer:
        writer.write(Machine().sample())
    with SessionReader(tmp_path / "a.lun") as reader:
        assert len(reader) == 1
    assert run_cli(["--version"]) == 0
    assert capsys.readouterr().out == f"lunscope, version {UNKNOWN}\n"


def test_an_installed_one_says_its_version() -> None:
    version.cache_clear()
    assert version() == metadata.version("lunscope")
