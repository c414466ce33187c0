"""Hosts by node sets and groups of ClusterShell, an extra (`lunscope[fleet]`), and usual slips in writing them."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from engine.errors import LunscopeError, UsageError
from engine.text import safe_text

NO_CLUSTER_SHELL = "needs ClusterShell: install lunscope[fleet] (uv tool install 'lunscope[fleet]')"
_RANGE = re.compile(r"(?<![\w])(\d+)-(\d+)(?![\w])", re.ASCII)
_BRACES = re.compile(r"\{(\d+)\.\.(\d+)\}", re.ASCII)
_BRACKET = re.compile(r"\[[^\]]*")
_NOT_IN_NAMES = re.compile(r"[\s;{}|&$()<>'\"*?\\`]")
_MOST_GROUPS = 8


def expand(nodes: str, group: str | None, option: str = "--hosts") -> tuple[str, ...]:
    """Names of a node set as ClusterShell writes them (`node[1-20],db3`, `@rack4`), within a group if one is given.

    Errors name the option it was given to.

    Raises:
        UsageError: it is none, or empty.
        LunscopeError: ClusterShell is missing.
    """
    try:
        from ClusterShell.NodeSet import NodeSet  # noqa: PLC0415 (an extra)
    except ImportError:
        raise LunscopeError(f"fleet: {NO_CLUSTER_SHELL}") from None
    try:
        found = _node_set(nodes) if nodes else NodeSet()
        if group:
            found = found & _group(group) if nodes else _group(group)
    except _errors() as error:
        raise UsageError(f"{option}: {safe_text(nodes)!r}: {_reason(error)}: {_fix(nodes)}") from None
    if not found:
        raise UsageError(f"{option}: {_nobody(nodes, group)}")
    names = tuple(str(name) for name in found)
    wrong = next((name for name in names if name.startswith("-")), None)
    if wrong is not None:
        raise UsageError(f"{option}: {wrong!r}: a name of a host does not begin with -")
    wrong = next((name for name in names if _is_no_name(name)), None)
    if wrong is not None:
        raise UsageError(f"{option}: {safe_text(wrong)!r} is no name of a host: {_fix(nodes)}")
    return names


def _errors() -> tuple[type[Exception], ...]:
    from ClusterShell.NodeSet import NodeSetException  # noqa: PLC0415 (an extra)
    from ClusterShell.NodeUtils import GroupResolverError, GroupSourceError  # noqa: PLC0415 (an extra)

    return NodeSetException, GroupResolverError, GroupSourceError, ValueError


def _node_set(nodes: str) -> Any:  # noqa: ANN401 (of an optional package)
    from ClusterShell.NodeSet import NodeSet  # noqa: PLC0415 (an extra)

    return NodeSet(nodes)


def _group(group: str) -> Any:  # noqa: ANN401 (of an optional package)
    """Find the hosts of a group, with or without its @."""
    name = group.removeprefix("@")
    try:
        found = _node_set(f"@{name}")
    except _errors() as error:
        raise UsageError(f"--group: {safe_text(name)!r}: {_reason(error)}: {_group_fix(name)}") from None
    if not found:
        raise UsageError(f"--group: no host in group {safe_text(name)}: {_group_fix(name)}")
    return found


def _reason(error: Exception) -> str:
    """Say what ClusterShell found, without the text it repeats."""
    if type(error).__name__ == "GroupResolverSourceError":
        return f"groups.conf of ClusterShell has no source {safe_text(str(error))!r}"
    return safe_text(str(error).split(' : "', 1)[0].replace('"', ""))


def _fix(nodes: str) -> str:
    """Say how it is written: as it was probably meant, where that is a node set."""
    meant = likely_meant(nodes)
    with suppress(*_errors()):
        if meant != nodes and all(not _is_no_name(str(name)) for name in _node_set(meant)):
            return f"write {safe_text(meant)}"
    return "write node[1-20],db3 or @group"


def _group_fix(group: str) -> str:
    from ClusterShell.NodeSet import grouplist  # noqa: PLC0415 (an extra)

    source, colon, name = group.rpartition(":")
    known: list[str] = []
    with suppress(*_errors()):
        known = sorted(map(str, grouplist(source or None)))
    return _likely_group(name, [f"{source}{colon}{each}" for each in known])


def _nobody(nodes: str, group: str | None) -> str:
    if group:
        return f"{safe_text(nodes)}: none of them is in group {safe_text(group)}: leave out --group"
    if nodes.startswith("@") and re.fullmatch(r"@[\w.:-]+", nodes):
        return f"no host in group {safe_text(nodes)}: {_group_fix(nodes[1:])}"
    return f"no host in {safe_text(nodes)}: write node[1-20],db3 or @group"


def _is_no_name(name: str) -> bool:
    """Whether no host is called so: a blank, a brace or what else the shell reads."""
    return _NOT_IN_NAMES.search(name) is not None


def likely_meant(nodes: str) -> str:
    """Return the node set that was probably meant; the same text where nothing is known to be wrong."""
    text = _BRACES.sub(r"[\1-\2]", nodes.strip())
    text = re.sub(r"[\s;]*[,;\s][\s;]*", ",", text)
    text = _BRACKET.sub(lambda part: _RANGE.sub(_upwards, part[0].replace("..", "-")), text)
    text = re.sub(r",(?=[,\]])|(?<=\[),", "", text).strip(",")
    return _balanced(text)


def _upwards(match: re.Match[str]) -> str:
    low, high = match[1], match[2]
    return match[0] if int(low) <= int(high) else f"{high}-{low}"


def _balanced(text: str) -> str:
    """Close what is open at the end of a bracket, and leave out brackets that close nothing."""
    made, is_open = "", False
    for char in text:
        if char == "]" and not is_open:
            continue
        if char == "[" and is_open:
            made += "]"
        is_open = char == "[" or (is_open and char != "]")
        made += char
    return f"{made}]" if is_open else made


def _likely_group(group: str, known: Sequence[str]) -> str:
    """Say which group was probably meant, or which there are."""
    if not known:
        return "no group is known: groups are in groups.conf of ClusterShell"
    near = difflib.get_close_matches(group, known, 1)
    if near:
        return f"did you mean @{near[0]}?"
    more = ", ..." if len(known) > _MOST_GROUPS else ""
    return f"the groups are {', '.join(f'@{name}' for name in known[:_MOST_GROUPS])}{more}"
