"""Which module of a Rust crate names which other, read from the source files.

Every path into the crate counts, in `use` and elsewhere. Test code (`#[cfg(test)]`), visibilities (`pub(in path)`) and
declarations (`mod child;`) do not. Of a path that begins with an imported name the `use` counts.
"""

import re
from collections.abc import Iterator
from pathlib import Path

Imports = dict[str, set[str]]

_ROOT = "crate"
_COMMENT_OR_LITERAL = re.compile(
    r"""
    //[^\n]* | /\*.*?\*/ |
    \bb?r(\#*)".*?"\1 | (?:\bb)?"(?:\\.|[^"\\])*" |
    (?:\bb)?'(?:\\'|\\[^']+|[^'\\])'
    """,
    re.DOTALL | re.VERBOSE,
)
_VISIBILITY = re.compile(r"\bpub\s*\([^)]*\)")
_TEST = re.compile(r"#\[cfg\(test\)\]")
_INLINE_MODULE = re.compile(r"\bmod\s+(\w+)\s*\{")
_TEST_FILE = re.compile(r"#\[cfg\(test\)\]\s*(?:pub\s+)?mod\s+(\w+)\s*;")
_USE = re.compile(r"\buse\s+([^;]+);")
_PATH = re.compile(r"(?<![\w:])\w+(?:\s*::\s*\w+)+")


def read_imports(folder: Path) -> Imports:
    """The modules of a crate's `src` by their paths from the crate's root, each with those it names; tests left out."""
    texts = {_name(folder, file): _code(file.read_text()) for file in folder.rglob("*.rs")}
    tests = {_join(module, found) for module, text in texts.items() for found in _TEST_FILE.findall(text)}
    known = {module for module in texts if module not in tests}
    return {module: _named_by(module, texts[module], known) - {module} for module in known}


def find_circles(imports: Imports) -> list[list[str]]:
    """Groups of modules each of which leads to all others of its group, by Tarjan's algorithm."""
    numbers: dict[str, int] = {}
    lowest: dict[str, int] = {}
    open_modules: list[str] = []
    circles: list[list[str]] = []

    def visit(module: str) -> None:
        numbers[module] = lowest[module] = len(numbers)
        open_modules.append(module)
        for other in sorted(imports[module]):
            if other not in numbers:
                visit(other)
            if other in open_modules:
                lowest[module] = min(lowest[module], lowest[other])
        if lowest[module] == numbers[module]:
            start = open_modules.index(module)
            circle = sorted(open_modules[start:])
            del open_modules[start:]
            if len(circle) > 1:
                circles.append(circle)

    for module in sorted(imports):
        if module not in numbers:
            visit(module)
    return circles


def _name(folder: Path, file: Path) -> str:
    parts = file.relative_to(folder).with_suffix("").parts
    if parts[-1] == "mod":
        parts = parts[:-1]
    return _ROOT if parts in {("lib",), ("main",)} else "::".join((_ROOT, *parts))


def _join(module: str, child: str) -> str:
    return f"{module}::{child}"


def _code(text: str) -> str:
    return _VISIBILITY.sub("pub", _COMMENT_OR_LITERAL.sub(" ", text))


def _named_by(module: str, code: str, known: set[str]) -> set[str]:
    code = _without_tests(code)
    named: set[str] = set()
    while inline := _INLINE_MODULE.search(code):
        end = _end_of_block(code, inline.end() - 1)
        body = code[inline.end() : end - 1]
        named |= _named_by(_join(module, inline[1]), body, known)
        code = code[: inline.start()] + code[end:]
    for path in _paths(code):
        named |= _resolved(module, path, known)
    return named


def _without_tests(code: str) -> str:
    while test := _TEST.search(code):
        end = _end_of_item(code, test.end())
        code = code[: test.start()] + code[end:]
    return code


def _end_of_item(code: str, start: int) -> int:
    """After the first semicolon or block from here on that no parenthesis or bracket encloses."""
    depth = 0
    for at in range(start, len(code)):
        match code[at]:
            case "(" | "[":
                depth += 1
            case ")" | "]":
                depth -= 1
            case ";" if depth == 0:
                return at + 1
            case "{" if depth == 0:
                return _end_of_block(code, at)
    return len(code)


def _end_of_block(code: str, start: int) -> int:
    depth = 0
    for at in range(start, len(code)):
        depth += {"{": 1, "}": -1}.get(code[at], 0)
        if depth == 0:
            return at + 1
    return len(code)


def _paths(code: str) -> Iterator[list[str]]:
    for use in _USE.findall(code):
        yield from _expanded(re.sub(r"\s+as\s+\w+", "", use))
    for path in _PATH.findall(_USE.sub(" ", code)):
        yield _parts(path)


def _parts(path: str) -> list[str]:
    return [part.strip() for part in path.split("::")]


def _expanded(tree: str) -> Iterator[list[str]]:
    """The paths of a tree such as `a::{b, c::{d, e}}`."""
    prefix, brace, rest = tree.strip().partition("{")
    if not brace:
        yield _parts(prefix)
        return
    depth, branch = 0, ""
    for letter in rest:
        if depth == 0 and letter in ",}":
            if branch.strip():
                yield from _expanded(prefix + branch)
            branch = ""
            continue
        depth += {"{": 1, "}": -1}.get(letter, 0)
        branch += letter


def _resolved(module: str, path: list[str], known: set[str]) -> set[str]:
    """The module that a path leads to, if it leads into the crate."""
    match path[0]:
        case "crate":
            parts, path = [_ROOT], path[1:]
        case "self":
            parts, path = module.split("::"), path[1:]
        case "super":
            parts = module.split("::")
        case child if _join(module, child) in known:
            parts = module.split("::")
        case _:
            return set()
    for part in path:
        if part == "super":
            parts = parts[:-1]
        elif part != "self":
            parts = [*parts, part]
    while parts and "::".join(parts) not in known:
        parts = parts[:-1]
    return {"::".join(parts)} if parts else set()
