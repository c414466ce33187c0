"""Private names of Textual and rich are used in one folder, written for one version."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import pytest
import textual

import tui

WRITTEN_FOR = "8.2.8"
FOLDER = "textual_internals"
OURS = ("engine._native", "__future__")
SYSTEM = {"_exit"}
"""Public names of the standard library."""
FILES = (path for path in Path(tui.__path__[0]).rglob("*.py") if FOLDER not in path.parts)
OUTSIDE = {path: ast.parse(path.read_text()) for path in FILES}


def test_the_version_is_the_one_that_the_folder_was_written_for() -> None:
    assert textual.__version__ == WRITTEN_FOR, f"look at each private name in tui/{FOLDER}, then name the version here"


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def own_names() -> Iterator[str]:
    """Private names that this project defines outside the folder."""
    for tree in OUTSIDE.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield node.name
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                yield node.attr
            elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                yield node.id


def test_no_private_name_of_others_is_used_elsewhere() -> None:
    known = {*own_names(), *SYSTEM}
    found = []
    for path, tree in OUTSIDE.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and is_private(node.attr) and node.attr not in known:
                found.append(f"{path}:{node.lineno}: {node.attr}")
            if isinstance(node, ast.ImportFrom) and node.module not in OURS:
                parts = (node.module or "").split(".")
                if any(map(is_private, parts)):
                    found.append(f"{path}:{node.lineno}: {node.module}")
    assert found == []


@pytest.mark.slow
def test_no_class_elsewhere_overrides_a_private_name() -> None:
    names = [each.name for each in pkgutil.walk_packages(tui.__path__, "tui.") if FOLDER not in each.name]
    modules = [importlib.import_module(name) for name in names if not name.endswith("__main__")]
    kinds = {each for module in modules for each in vars(module).values() if isinstance(each, type)}
    found = [
        f"{kind.__module__}.{kind.__name__}.{name}: {base.__name__}"
        for kind in kinds
        if kind.__module__.startswith("tui.") and FOLDER not in kind.__module__
        for base in kind.__mro__
        if base.__module__.startswith(("textual.", "rich."))
        for name in vars(kind).keys() & vars(base).keys()
        if is_private(name) and callable(vars(kind)[name])
    ]
    assert found == []
