"""Targets in text: a path, the word for a scratch file, or the paths to one LUN.

    /dev/sdb            a device or file
    scratch             a file that lunscope makes and removes; a file of that name is ./scratch
    lun:sda,sdb=3,sdc!  several device nodes of one LUN; `=3` is a weight, `!` marks the preferred path

Names of paths without a slash are device nodes in /dev. A file whose name begins with `lun:` is `./lun:...`.
"""

from __future__ import annotations

from engine.errors import UsageError
from engine.job.spec import MAX_WEIGHT, PathSpec, TargetSpec
from engine.text import safe_text, whole_number

SCRATCH = "scratch"
LUN = "lun:"
_DEVICES = "/dev/"
_PREFERRED = "!"


def node_name(name: str) -> str:
    """Complete the name of a device node: `sda` is `/dev/sda`."""
    return name if "/" in name else _DEVICES + name


def parse_lun(text: str) -> TargetSpec:
    """Read the paths to one LUN, `sda,sdb=3,sdc!`.

    Raises:
        UsageError: an empty name, or a weight that is no whole number.
    """
    return TargetSpec.lun(tuple(_parse_path(part.strip(), text) for part in text.split(",")))


def _parse_path(part: str, text: str) -> PathSpec:
    preferred = part.endswith(_PREFERRED)
    name, equals, weight = part.removesuffix(_PREFERRED).partition("=")
    if not name:
        raise UsageError(f"{safe_text(text)}: an empty path: write the device nodes of one LUN as sda,sdb,sdc")
    number = whole_number(weight) if equals else 1
    if number is None:
        raise UsageError(f"{safe_text(part)}: the weight is no whole number: write sda=3, with 0 to {MAX_WEIGHT}")
    return PathSpec(node_name(name), number, preferred=preferred)


def prefer(target: TargetSpec, names: frozenset[str]) -> TargetSpec:
    """Mark the paths of these names as preferred."""
    if not target.paths:
        return target
    return TargetSpec.lun(
        tuple(PathSpec(path.path, path.weight, path.preferred or path.path in names) for path in target.paths)
    )


def parse_target(text: str) -> TargetSpec:
    """Read one target.

    Raises:
        UsageError: as parse_lun.
    """
    if text == SCRATCH:
        return TargetSpec()
    return parse_lun(text.removeprefix(LUN)) if text.startswith(LUN) else TargetSpec(text)


def format_target(target: TargetSpec) -> str:
    """Write a target so that `parse_target` reads the same."""
    if target.paths:
        return LUN + ",".join(map(_format_path, target.paths))
    if target.path is None:
        return SCRATCH
    return f"./{target.path}" if target.path == SCRATCH or target.path.startswith(LUN) else target.path


def _format_path(path: PathSpec) -> str:
    weight = "" if path.weight == 1 else f"={path.weight}"
    return f"{path.path}{weight}{_PREFERRED if path.preferred else ''}"
