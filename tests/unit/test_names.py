"""One name, one meaning: no two classes are called the same."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.slow
def test_no_two_classes_have_the_same_name() -> None:
    owners: dict[str, list[str]] = defaultdict(list)
    for package in ("engine", "collectors", "tui"):
        for file in sorted((REPOSITORY / package).rglob("*.py")):
            tree = ast.parse(file.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                if isinstance(node, ast.ClassDef):
                    owners[node.name].append(str(file.relative_to(REPOSITORY)))
    assert "LunscopeApp" in owners
    assert {name: files for name, files in owners.items() if len(files) > 1} == {}
