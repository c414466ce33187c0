"""Changes of one target on top of each other, as one plan from the values before the first of them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from engine.replacing import replace
from engine.tune.plan import SideEffect, TunePlan, Write


def combine_plans(earlier: Sequence[TunePlan], latest: TunePlan) -> TunePlan:
    """Combine plans in force with one that was made on top of them; writes that come to nothing are left out.

    Apply the result once the earlier ones are restored: its values before are those before all of them.

    Args:
        earlier: as they were applied, oldest first.
        latest: made from the values of now.
    """
    original = {_key(write): write for plan in reversed(earlier) for write in plan.writes}
    effects = {effect.path: effect for plan in reversed(earlier) for effect in plan.effects}
    remade = {write.target.key for plan in earlier for write in plan.writes if write.tunable.resets}
    writes = {_key(write): write for plan in earlier for write in plan.writes if not _is_removed(write, latest)}
    for write in latest.writes:
        first = original.get(_key(write))
        before, kept = (_before(write, effects, remade), write.kept) if first is None else (first.before, first.kept)
        writes[_key(write)] = replace(write, before=before, kept=kept)
    needed = (one for one in writes.values() if one.before != one.after or _is_reset(one, writes.values()))
    changing = sorted(needed, key=lambda one: one.tunable.phase)
    own = {write.tunable.path(write.target) for write in changing}
    paths = {one.tunable.path(one.target): one.before for plan in reversed(earlier) for one in plan.writes}
    new = (
        replace(effect, before=paths.get(effect.path) or effect.before)
        for effect in latest.effects
        if effect.target.key not in remade
    )
    found = {effect.path: effect for effect in (*new, *effects.values()) if effect.path not in own}
    return TunePlan(tuple(changing), tuple(_still_caused(found.values(), changing)), latest.unchanged)


def _key(write: Write) -> tuple[str, str]:
    return write.tunable.id, write.target.key


def _is_removed(write: Write, latest: TunePlan) -> bool:
    """Whether the file of an earlier write belongs to what the latest plan replaces, as a scheduler its own."""
    maker = _maker(write)
    return bool(maker) and any(_key(one) == (maker, write.target.key) for one in latest.writes)


def _maker(write: Write) -> str:
    """Name the tunable that makes and removes its file; empty for one that is always there."""
    return write.tunable.made_by if write.tunable.phase > 1 else ""


def _is_reset(write: Write, writes: Iterable[Write]) -> bool:
    """Whether the kernel sets it anew with another write, so that the value before all changes must be written."""
    others = (one for one in writes if one.target.key == write.target.key and one.before != one.after)
    return any(write.tunable.file in one.tunable.resets for one in others)


def _before(write: Write, effects: dict[str, SideEffect], remade: set[str]) -> str:
    """Return the value before all changes, of a tunable that none of the earlier ones has set."""
    effect = effects.get(write.tunable.path(write.target))
    if effect is not None:
        return write.tunable.form.value(effect.before, write.target.device) or ""
    return "" if _maker(write) and write.target.key in remade else write.before


def _still_caused(effects: Iterable[SideEffect], writes: Sequence[Write]) -> Iterable[SideEffect]:
    causing = {write.target.key for write in writes if write.tunable.resets}
    return (replace(effect, after="") for effect in effects if effect.target.key in causing)
