"""Job files of unchecked kind: pipes that are written, that are silent, and what is no text."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from engine.errors import UsageError
from engine.job.formats import text_file
from engine.job.formats.text_file import MAX_FILE_BYTES, read_text


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    path = tmp_path / "job.toml"
    os.mkfifo(path)
    return path


def test_a_pipe_that_nobody_writes_is_an_error(pipe: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_file, "_PIPE_PATIENCE_S", 0.05)
    with pytest.raises(UsageError, match=r"job\.toml: nothing has come from this pipe for 0\.05 s"):
        read_text(pipe)


@pytest.mark.parametrize("written", [b"", b"qd = 4\n", b"#" * MAX_FILE_BYTES])
def test_a_pipe_is_read_to_its_end(pipe: Path, written: bytes) -> None:
    writer = threading.Thread(target=pipe.write_bytes, args=(written,))
    writer.start()
    try:
        assert read_text(pipe) == written.decode()
    finally:
        writer.join()


def test_a_pipe_without_an_end_is_too_large(pipe: Path) -> None:
    def write() -> None:
        with pytest.raises(BrokenPipeError):
            pipe.write_bytes(b"#" * (4 * MAX_FILE_BYTES))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with pytest.raises(UsageError, match="larger than 1 MiB"):
            read_text(pipe)
    finally:
        writer.join()
