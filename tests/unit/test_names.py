"""One name, one meaning: no two classes are called the same."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
CLASS = re.compile(r"^ *class (\w+)[(:\[]", re.MULTILINE)
"""Begin of a definition; to parse every file takes seconds."""


def test_no_two_classes_have_the_same_name() -> None:
    owners: dict[str, list[str]] = defaultdict(list)
    for package in ("engine", "collectors", "tui"):
        for file in sorted((REPOSITORY / package).rglob("*.py")):
            for name in CLASS.findall(file.read_text(encoding="utf-8")):
                owners[name].append(str(file.relative_to(REPOSITORY)))
    assert "LunscopeApp" in owners
    assert {name: files for name, files in owners.items() if len(files) > 1} == {}
