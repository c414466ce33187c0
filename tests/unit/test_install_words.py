"""What messages and documents say of installing: no name of a package index, which anybody may register."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

_ROOT = Path(__file__).parents[2]
_INSTALL = re.compile(
    r"\b(?:pip3?|pipx|uv|uv tool|uv pip)\s+(?:install|run|add)\s+(?:-\S+\s+)*['\"]?([^\s'\"`]+)|\buvx\s+(\S+)"
)
_TEXTS = [
    path
    for folder in ("engine", "collectors", "tui", "docs", "examples")
    for path in sorted((_ROOT / folder).rglob("*"))
    if path.suffix in {".py", ".md", ".toml", ".rs"} and "target" not in path.parts
]


@pytest.mark.parametrize("command", ["pip install lunscope", "uv tool install 'lunscope[fleet]'", "uvx lunscope"])
def test_such_words_are_found(command: str) -> None:
    assert _INSTALL.search(command)


def test_only_files_are_installed() -> None:
    named = [
        f"{path.relative_to(_ROOT)}: {match[0]}"
        for path in (*_TEXTS, _ROOT / "README.md", _ROOT / "CONTRIBUTING.md")
        for match in _INSTALL.finditer(path.read_text(encoding="utf-8"))
        if not (match[1] or "").startswith((".", "dist/", "requirements"))
    ]
    assert not named
