"""Files and folders that the documents for maintainers name are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMED = re.compile(r"(?<![\w/.])((?:engine|collectors|tui|themes|tests|bench|docs)/[\w./{},*-]+)")


def named_files(text: str) -> set[str]:
    found = set()
    for name in NAMED.findall(text):
        head, brace, rest = name.rstrip(".,/").partition("{")
        inner, _, tail = rest.partition("}")
        found |= {f"{head}{part}{tail}" for part in inner.split(",")} if brace else {head}
    return found


@pytest.mark.parametrize("document", ["CONTRIBUTING.md", "docs/architecture.md", "docs/glossary.md", "README.md"])
def test_what_a_document_names_is_there(document: str) -> None:
    missing = sorted(name for name in named_files((ROOT / document).read_text()) if not any(ROOT.glob(name)))
    assert missing == []
