"""What verification found, in lines for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from engine.job.sizes import human_size
from engine.verify.damage import Damage, damage_verdict
from engine.verify.run_result import Verified, VerifiedTarget

MOST_LINES = 16
"""Damaged ranges that a summary names one by one."""


def verified_lines(verified: Verified) -> Iterator[str]:
    """Say what a verified load compared, and one line per damaged range."""
    for target in verified.targets:
        yield f"verify {target.name}: {_sums(target)}"
        yield from damage_lines(target.name, target.all_damage, MOST_LINES)


def _sums(target: VerifiedTarget) -> str:
    if not (target.written_bytes or target.damage):
        return "this load wrote nothing, so there was nothing to compare with: give --rw randrw, or use lunscope verify"
    read = f"{human_size(target.checked_bytes)} of reads compared"
    if target.raced_bytes:
        read += f", {human_size(target.raced_bytes)} met a write and were not"
    found = damage_verdict(len(target.all_damage))
    return f"{human_size(target.written_bytes)} written, {read}; {_at_the_end(target)}; {found}"


def _at_the_end(target: VerifiedTarget) -> str:
    if target.final_pass is None:
        return "the final pass was not made"
    return f"{human_size(target.final_pass.good_bytes + target.final_pass.damaged_bytes)} read back at the end"


def damage_lines(name: str, damage: Sequence[Damage], most: int) -> Iterator[str]:
    """One line for each of the first ranges, and how many more there are."""
    for one in damage[:most]:
        yield f"damage: {name}: {one.text}"
    if len(damage) > most:
        yield f"damage: {name}: and {len(damage) - most:,} more"
