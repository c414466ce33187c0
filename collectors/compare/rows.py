"""Which row of A is which row of B: by identity, never by a kernel name that another device may have taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from collectors.compare.side import SideRow

_Token = tuple[str, str, str] | None


def _by_key(row: SideRow) -> _Token:
    return row.table, row.key, ""


def _by_identity_and_name(row: SideRow) -> _Token:
    return row.table, row.identity, row.name


def _by_identity(row: SideRow) -> _Token:
    return (row.table, row.identity, "") if row.identity != row.key else None


def _by_name(row: SideRow) -> _Token:
    """Return a token for a row without a persistent identity: a loop device, a scratch file, a target."""
    return (row.table, row.name, "") if row.identity == row.key else None


_TOKENS: tuple[Callable[[SideRow], _Token], ...] = (_by_key, _by_identity_and_name, _by_identity, _by_name)


def matched(a: Sequence[SideRow], b: Sequence[SideRow]) -> list[tuple[SideRow, SideRow]]:
    """Pair the rows that are the same object, in the order of A; one that several rows could be is left out.

    Paths of one LUN share its identity, so that the name counts, too.
    """
    partner: dict[int, int] = {}
    for token in _TOKENS:
        left = _unique(a, token, set(partner))
        right = _unique(b, token, set(partner.values()))
        partner |= {left[found]: right[found] for found in left if found in right}
    return [(a[index], b[partner[index]]) for index in sorted(partner)]


def _unique(rows: Sequence[SideRow], token: Callable[[SideRow], _Token], taken: set[int]) -> dict[_Token, int]:
    found = [(token(row), index) for index, row in enumerate(rows) if index not in taken]
    count = Counter(name for name, _ in found)
    return {name: index for name, index in found if name is not None and count[name] == 1}
