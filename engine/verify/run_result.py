"""What a verified load found, by its reads while it ran and by the pass at its end, and in lines for people."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

from msgspec import Struct

from engine._native import LoadEngine, VerifyPass
from engine.verify.damage import Damage, damage_document, damage_of, damage_verdict
from engine.verify.passing import PassResult, run_pass

_MOST_LISTED = 1000


class VerifiedTarget(Struct, frozen=True):
    """One target of a verified load."""

    name: str
    written_bytes: int
    checked_bytes: int
    """Bytes of reads that were compared with what was written there."""
    raced_bytes: int
    """Bytes of reads that met a write to the same range, or a failed one, and were not compared."""
    unwritten_bytes: int
    """Bytes of reads from where the load wrote nothing, which were not compared."""
    damage: tuple[Damage, ...]
    """Damage that reads met, in that order, each once."""
    final_pass: PassResult | None
    """None if it was not made, or not to its end."""

    @property
    def all_damage(self) -> tuple[Damage, ...]:
        """Damage of reads and of the final pass, each once, by offset."""
        found = self.damage + (() if self.final_pass is None else self.final_pass.damage)
        return tuple(sorted({(one.offset, one.kind): one for one in found}.values(), key=lambda one: one.offset))


class Verified(Struct, frozen=True):
    """What a verified load found on all targets."""

    run_ns: int
    """Time since 1970 at which it was set up; its number in all that it wrote."""
    targets: tuple[VerifiedTarget, ...]

    @property
    def damaged(self) -> int:
        """Damaged ranges on all targets."""
        return sum(len(target.all_damage) for target in self.targets)

    @property
    def verdict(self) -> str:
        """Say how many ranges are damaged, and whether all that was written was checked."""
        found = damage_verdict(self.damaged)
        complete = all(target.final_pass is not None for target in self.targets)
        return found if complete else f"{found} found, but not all that was written was read back"


def verified_so_far(
    engine: LoadEngine, names: Sequence[str], passes: Sequence[PassResult | None] | None = None
) -> Verified:
    """Gather what reads found, and the final passes if they were made."""
    damage: dict[int, list[Damage]] = {}
    for target, row in engine.damage():
        damage.setdefault(target, []).append(damage_of(row))
    rows = zip(names, engine.verified()[:, :4].tolist(), passes or [None] * len(names), strict=True)
    return Verified(
        engine.verified_run,
        tuple(
            VerifiedTarget(name, written, checked, raced, unwritten, tuple(damage.get(index, ())), final_pass)
            for index, (name, (written, checked, raced, unwritten), final_pass) in enumerate(rows)
        ),
    )


def final_passes(
    engine: LoadEngine,
    names: Sequence[str],
    progress: Callable[[float], None],
    stop: threading.Event,
    give_up_s: float = math.inf,
    *,
    begins: Callable[[VerifyPass, str], None] = lambda _pass, _name: None,
) -> list[PassResult | None]:
    """Read back all that the load wrote, target by target.

    None for what could not be read, not before `stop` was set, or where a read did not return for `give_up_s`. `begins`
    is called with every pass that is made.
    """
    passes, results = engine.final_passes(), list[PassResult | None]()
    for target_pass, name in zip(passes, names, strict=True):

        def report_progress(share: float, done: int = len(results)) -> None:
            progress((done + share) / len(passes))

        result = None
        if not stop.is_set():
            # Without memory or threads for it there is no pass, and the result of the run says so.
            with suppress(OSError):
                begins(target_pass, name)
                result = run_pass(target_pass, name, report_progress, stop, give_up_s)
        results.append(result)
    return results


def verified_document(verified: Verified) -> dict[str, object]:
    """Make the section `verify` of a run's document."""
    return {
        "run_ns": verified.run_ns,
        "damaged_ranges": verified.damaged,
        "targets": [_target_document(target) for target in verified.targets],
    }


def _target_document(target: VerifiedTarget) -> dict[str, object]:
    damage = target.all_damage
    return {
        "name": target.name,
        "written_bytes": target.written_bytes,
        "reads": {
            "checked_bytes": target.checked_bytes,
            "raced_bytes": target.raced_bytes,
            "unwritten_bytes": target.unwritten_bytes,
            "damaged_ranges": len(target.damage),
        },
        "final_pass": None if target.final_pass is None else pass_document(target.final_pass),
        "damaged_ranges": len(damage),
        "damage": [damage_document(one) for one in damage[:_MOST_LISTED]],
    }


def pass_document(result: PassResult) -> dict[str, object]:
    """Make the sums of one pass ready for json.dumps."""
    return {
        "good_bytes": result.good_bytes,
        "foreign_bytes": result.foreign_bytes,
        "elsewhere_bytes": result.elsewhere_bytes,
        "skipped_bytes": result.skipped_bytes,
        "damaged_bytes": result.damaged_bytes,
        "damaged_bytes_by_kind": result.by_kind,
    }


def damage_lines(name: str, damage: Sequence[Damage], most: int) -> Iterator[str]:
    """One line for each of the first ranges, and how many more there are."""
    for one in damage[:most]:
        yield f"damage: {name}: {one.text}"
    if len(damage) > most:
        yield f"damage: {name}: and {len(damage) - most:,} more"
