"""Likely meanings of node sets that ClusterShell does not take: usual slips of brackets, ranges and commas."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

_RANGE = re.compile(r"(?<![\w])(\d+)-(\d+)(?![\w])", re.ASCII)
_BRACES = re.compile(r"\{(\d+)\.\.(\d+)\}", re.ASCII)
_BRACKET = re.compile(r"\[[^\]]*")
_NOT_IN_NAMES = re.compile(r"[\s;{}|&$()<>'\"*?\\`]")
_MOST_GROUPS = 8


def is_no_name(name: str) -> bool:
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


def group_fix(group: str, known: Sequence[str]) -> str:
    """Say which group was probably meant, or which there are."""
    if not known:
        return "no group is known: groups are in groups.conf of ClusterShell"
    near = difflib.get_close_matches(group, known, 1)
    if near:
        return f"did you mean @{near[0]}?"
    more = ", ..." if len(known) > _MOST_GROUPS else ""
    return f"the groups are {', '.join(f'@{name}' for name in known[:_MOST_GROUPS])}{more}"
