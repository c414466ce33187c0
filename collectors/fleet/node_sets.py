"""Hosts by node sets and groups of ClusterShell, an extra (`lunscope[fleet]`), and usual slips in writing them.

ClusterShell gets only text that `node_terms` has checked: ranges of a known size, and one name of a group at a time.
"""

from __future__ import annotations

import difflib
import fnmatch
import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

from collectors.fleet.node_terms import MOST_HOSTS, NodeSetError, NodeTerm, is_group, is_host, terms
from engine.errors import UsageError, missing_extra
from engine.text import safe_text, short_text

_RANGE = re.compile(r"(?<![\w])(\d+)-(\d+)(?![\w])", re.ASCII)
_BRACES = re.compile(r"\{(\d+)\.\.(\d+)\}", re.ASCII)
_BRACKET = re.compile(r"\[[^\]]*")
_DIGITS = re.compile(r"([0-9]+)", re.ASCII)
_MOST_GROUPS = 8
_DEEPEST = 8
"""Groups of groups: more are one that contains itself."""
_SHOWN = 200


def expand(nodes: str, group: str | None, option: str = "--hosts") -> tuple[str, ...]:
    """Names of a node set of an option (`node[1-20],db3`, `@rack4`), within a group if one is given.

    Errors name the option it was given to.

    Raises:
        UsageError: it is none, empty, or of more than 10,000 hosts.
        LunscopeError: ClusterShell is missing.
    """
    _require_cluster_shell()
    found = _found(nodes, option, groups=True) if nodes else {}
    if group:
        members = _group(group)
        found = {name: None for name in found if name in members} if nodes else members
    if not found:
        raise UsageError(f"{option}: {_nobody(nodes, group)}")
    return tuple(found)


def expand_names(nodes: str, source: str) -> tuple[str, ...]:
    """Names of a node set without groups and wildcards, as a job file may have them: it cannot run anything.

    Raises:
        UsageError: it is none, empty, or of more than 10,000 hosts; it names the source.
        LunscopeError: ClusterShell is missing.
    """
    _require_cluster_shell()
    found = _found(nodes, source, groups=False)
    if not found:
        raise UsageError(f"{source}: no host in {short_text(safe_text(nodes), _SHOWN)}: write node[1-20],db3")
    return tuple(found)


def _require_cluster_shell() -> None:
    try:
        import ClusterShell.NodeSet  # noqa: F401, PLC0415 (an extra)
    except ImportError:
        raise missing_extra("fleet", "ClusterShell", "fleet") from None


def _errors() -> tuple[type[Exception], ...]:
    from ClusterShell.NodeSet import NodeSetException  # noqa: PLC0415 (an extra)
    from ClusterShell.NodeUtils import GroupResolverError, GroupSourceError  # noqa: PLC0415 (an extra)

    return NodeSetException, GroupResolverError, GroupSourceError, NodeSetError, ValueError


def _found(nodes: str, source: str, *, groups: bool) -> dict[str, None]:
    try:
        return _in_order(_hosts(terms(nodes, groups=groups), None, 0))
    except _errors() as error:
        shown = short_text(safe_text(nodes), _SHOWN)
        raise UsageError(f"{source}: {shown!r}: {_reason(error)}: {_fix(nodes, groups=groups)}") from None


def _in_order(names: Iterable[str]) -> dict[str, None]:
    """Sort names as ClusterShell does: by their texts, then by their numbers."""

    def key(name: str) -> tuple[list[str], list[tuple[int, str]]]:
        parts = _DIGITS.split(name)
        return parts[::2], [(len(number), number) for number in parts[1::2]]

    return dict.fromkeys(sorted(names, key=key))


def _hosts(parts: Sequence[NodeTerm], source: str | None, depth: int) -> set[str]:
    """Find the hosts of parts of a node set, whose groups are of a source of groups.conf, or the default one."""
    found: set[str] = set()
    for part in parts:
        names = _of_groups(part, source, depth) if part.is_group else _of_names(part, source, depth)
        if part.operator == ",":
            found |= names
        elif part.operator == "!":
            found -= names
        elif part.operator == "&":
            found &= names
        else:
            found ^= names
        if len(found) > MOST_HOSTS:
            raise NodeSetError(f"more than {MOST_HOSTS:,} hosts")
    return found


def _plain(text: str) -> set[str]:
    """Have ClusterShell make the names of a part without groups."""
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet  # noqa: PLC0415 (an extra)

    try:
        return {str(name) for name in NodeSet(text, resolver=RESOLVER_NOGROUP)}
    except (AssertionError, ArithmeticError, LookupError, TypeError) as error:
        # It asserts what it expects of numbers: "range too large".
        raise NodeSetError(str(error) or "no node set to ClusterShell") from None


def _of_names(part: NodeTerm, source: str | None, depth: int) -> set[str]:
    names = _plain(part.text)
    if part.has_wildcard:
        known = sorted(_of_text(_all_nodes(source), source, depth))
        return {name for mask in names for name in fnmatch.filter(known, mask)}
    wrong = next((name for name in names if not is_host(name)), None)
    if wrong is not None:
        raise NodeSetError(f"{safe_text(wrong)!r} is no name of a host")
    return names


def _of_groups(part: NodeTerm, source: str | None, depth: int) -> set[str]:
    prefix, colon, group = part.text[1:].rpartition(":")
    source = prefix if colon else source
    if group == "*":
        return _of_text(_all_nodes(source), source, depth)
    return {name for each in _plain(group) for name in _of_text(_resolver().group_nodes(each, source), source, depth)}


def _of_text(texts: Iterable[str], source: str | None, depth: int) -> set[str]:
    """Find the hosts of what a source of groups answers: it may name groups again."""
    if depth >= _DEEPEST:
        raise NodeSetError(f"groups of groups more than {_DEEPEST} deep")
    return _hosts([part for text in texts for part in terms(text, groups=True)], source, depth + 1)


def _resolver() -> Any:  # noqa: ANN401 (of an optional package)
    from ClusterShell.NodeSet import std_group_resolver  # noqa: PLC0415 (an extra)

    return std_group_resolver()


def _all_nodes(source: str | None) -> list[str]:
    from ClusterShell.NodeUtils import GroupSourceNoUpcall  # noqa: PLC0415 (an extra)

    try:
        return list(_resolver().all_nodes(source))
    except GroupSourceNoUpcall:
        return [text for name in _group_names(source) for text in _resolver().group_nodes(name, source)]


def _group_names(source: str | None) -> list[str]:
    return [str(name) for name in _resolver().grouplist(source) if is_group(f"@{name}")]


def _group(group: str) -> dict[str, None]:
    """Find the hosts of a group, with or without its @."""
    name = group.removeprefix("@")
    try:
        found = _in_order(_hosts(terms(f"@{name}", groups=True), None, 0))
    except _errors() as error:
        raise UsageError(f"--group: {safe_text(name)!r}: {_reason(error)}: {_group_fix(name)}") from None
    if not found:
        raise UsageError(f"--group: no host in group {safe_text(name)}: {_group_fix(name)}")
    return found


def _reason(error: Exception) -> str:
    """Say what is wrong, without the text that ClusterShell repeats."""
    if isinstance(error, NodeSetError):
        return str(error)
    if type(error).__name__ == "GroupResolverSourceError":
        return f"groups.conf of ClusterShell has no source {safe_text(str(error))!r}"
    return short_text(safe_text(str(error).split(' : "', 1)[0].replace('"', "")), _SHOWN)


def _fix(nodes: str, *, groups: bool) -> str:
    """Say how it is written: as it was probably meant, where that is a node set."""
    if len(nodes) <= _SHOWN:
        meant = likely_meant(nodes)
        with suppress(*_errors()):
            if meant != nodes and _hosts(terms(meant, groups=False), None, 0):
                return f"write {safe_text(meant)}"
    return "write node[1-20],db3 or @group" if groups else "write node[1-20],db3"


def _group_fix(group: str) -> str:
    source, colon, name = group.rpartition(":")
    known: list[str] = []
    with suppress(*_errors()):
        known = sorted(_group_names(source or None))
    return _likely_group(name, [f"{source}{colon}{each}" for each in known])


def _nobody(nodes: str, group: str | None) -> str:
    if group:
        return f"{safe_text(nodes)}: none of them is in group {safe_text(group)}: leave out --group"
    if is_group(nodes):
        return f"no host in group {safe_text(nodes)}: {_group_fix(nodes[1:])}"
    return f"no host in {safe_text(nodes)}: write node[1-20],db3 or @group"


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
