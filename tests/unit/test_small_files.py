"""Files of settings where something else is: a pipe, a device, something huge, and TOML that takes hours."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from collectors.alerts.alert_settings import load_alert_settings
from collectors.sampling.reading_settings import load_reading_settings
from engine.errors import UsageError
from engine.job.file import parse_job
from engine.small_file import MOST_BYTES, FileKindError, read_small
from engine.toml_text import parse_toml_text
from tui.kept import Kept
from tui.settings import load_settings


def _pipe(path: Path) -> None:
    os.mkfifo(path)


def _zeros(path: Path) -> None:
    path.symlink_to("/dev/zero")


def _huge(path: Path) -> None:
    path.touch()
    os.truncate(path, MOST_BYTES + 1)


def _folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("make", [_pipe, _zeros, _huge, _folder])
def test_all_readers_of_settings_say_what_is_there(tmp_path: Path, make: Callable[[Path], None]) -> None:
    file = tmp_path / "config.toml"
    make(file)
    says = "larger than 1,024 KiB" if make is _huge else "not a regular file"
    with pytest.raises(FileKindError, match=says):
        read_small(file)
    assert load_settings(file).problems == (f"{file}: {says}",)
    assert load_reading_settings(file).problems == (f"{file}: {says}",)
    assert load_alert_settings(file).problems == ()
    kept = Kept(file, "the columns", str)
    assert kept.problem == f"{file}: {says}: delete it to choose the columns anew"


def test_a_file_of_the_largest_size_is_read(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"#" * MOST_BYTES)
    assert len(read_small(file)) == MOST_BYTES


@pytest.mark.parametrize(
    "text",
    [
        "a." * 500_000 + "a = 1",
        '"a" . ' * 50_000 + "a = 1",
        f"[{'a.' * 50_000}a]",
        "b = 1\nc = {" + "a." * 40 + "a = 1}",
    ],
)
def test_keys_of_many_parts_are_refused_before_they_take_hours(text: str) -> None:
    begun = time.process_time()
    with pytest.raises(ValueError, match="a key of more than 32 parts"):
        parse_toml_text(text)
    with pytest.raises(UsageError, match=r"^job: not a job file in TOML: a key of more than 32 parts \(at line"):
        parse_job(text)
    assert time.process_time() - begun < 2.0


@pytest.mark.parametrize("text", ['"' * 10**6, "'\"" * 300_000, "x" * 10**6, "a = [" * 1000])
def test_no_text_takes_long_to_check(text: str) -> None:
    begun = time.process_time()
    with pytest.raises(ValueError):
        parse_toml_text(text)
    assert time.process_time() - begun < 2.0


def test_text_with_many_dots_is_no_key() -> None:
    assert parse_toml_text('a = "' + "x. " * 100 + '"\n[b.c.d.e]\nf.g = 1.5')["b"]["c"]["d"]["e"] == {"f": {"g": 1.5}}
