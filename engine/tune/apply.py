"""Writing a plan, and restoring what was there before."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from engine.errors import LunscopeError
from engine.replacing import replace
from engine.text import safe_text, short_text, signed_number
from engine.tune.planned_writes import SideEffect, TunePlan, Write
from engine.tune.tree import KernelTree


class Restored(Struct, frozen=True):
    """What restoring did."""

    back: int
    """Values that are as they were before."""
    left: tuple[str, ...]
    """One line for each that is not, with the reason."""
    remaining: tuple[Write, ...] = ()
    """Writes whose target is there: somebody else has changed it, or the kernel refuses."""


def check_unchanged(tree: KernelTree, plan: TunePlan) -> None:
    """Check that all values are still those that the plan was made from, once nobody else can change them.

    Raises:
        LunscopeError: one is not.
    """
    for write in plan.writes:
        now = write.tunable.present(tree, write.target) or ""
        if now != write.before:
            shown = safe_text(short_text(now, 80)) or "gone"
            raise LunscopeError(f"{write.tunable.id} of {write.target.name}: it has just become {shown}; try again")


def apply_plan(tree: KernelTree, plan: TunePlan, *, nearest: bool = False) -> TunePlan:
    """Write all values and compare what the kernel has then; the caller restores them if one fails.

    Args:
        tree: the kernel's files.
        plan: what to write.
        nearest: keep a value that the kernel made of a given one instead of failing.

    Returns:
        The plan with the values that the kernel has.

    Raises:
        LunscopeError: one failed; the message says which and why.
    """
    done = []
    for write in plan.writes:
        check_identity(tree, write)
        done.append(_write(tree, write, nearest=nearest))
    if any(write.tunable.resets for write in done):
        _check_again(tree, done)
    effects = tuple(replace(effect, after=tree.read(effect.path) or "") for effect in plan.effects)
    return replace(plan, writes=tuple(done), effects=effects)


def _check_again(tree: KernelTree, writes: Iterable[Write]) -> None:
    """Compare once more where one tunable of the change may have set another anew."""
    for write in writes:
        now = write.tunable.present(tree, write.target)
        if now != write.after:
            raise LunscopeError(f"{write.tunable.id} of {write.target.name}: another value of the change made it {now}")


def _write(tree: KernelTree, write: Write, *, nearest: bool) -> Write:
    check_identity(tree, write)
    tunable, target = write.tunable, write.target
    tunable.set(tree, target, write.after)
    now = tunable.present(tree, target)
    if now == write.after:
        return write
    if now is None:
        raise LunscopeError(f"{tunable.id} of {target.name}: it is gone after the write")
    if nearest:
        return replace(write, after=now)
    shown = safe_text(short_text(now, 80))
    hint = "" if now == write.before else " (--nearest keeps what the kernel makes of it)"
    raise LunscopeError(f"{tunable.id} of {target.name}: the kernel took {write.after} and has {shown}{hint}")


def check_identity(tree: KernelTree, write: Write | SideEffect) -> None:
    """Refuse a device or group that took the name of the one that was meant.

    Raises:
        LunscopeError: the one that was meant is gone.
    """
    inode = tree.inode(write.target.folder)
    if inode is None:
        raise LunscopeError(f"{write.target.name}: it is gone")
    if inode != write.inode:
        raise LunscopeError(f"{write.target.name}: it is another device or group now")


def restore(tree: KernelTree, plan: TunePlan, *, force: bool = False) -> Restored:
    """Write back what was there before.

    Without `force` a value that is no longer the one that was set is left as it is: somebody else has changed it.
    """
    gone, others, ours = _sorted_out(tree, plan.writes, force=force)
    made_anew = {write.target.key for write in ours if write.tunable.resets}
    effects = [(effect.path, _wanted(tree, effect)) for effect in plan.effects if effect.target.key in made_anew]
    failed = [(write, problem) for write in ours if (problem := _back(tree, write))]
    # Files that the kernel has set anew, after all tunables that reset others.
    odd = [_effect_back(tree, path, wanted) for path, wanted in effects]
    problems = [problem for problem in (*gone, *(text for _, text in (*others, *failed)), *odd) if problem]
    remaining = tuple(write for write, _ in (*others, *failed))
    return Restored(len(plan.writes) - len(gone) - len(remaining), tuple(problems), remaining)


def _sorted_out(
    tree: KernelTree, writes: Iterable[Write], *, force: bool
) -> tuple[list[str], list[tuple[Write, str]], list[Write]]:
    """Compare with what is there now, before any value is written: one tunable may set others anew."""
    gone: list[str] = []
    others: list[tuple[Write, str]] = []
    ours: list[Write] = []
    for write in writes:
        try:
            check_identity(tree, write)
            if write.tunable.computed is not None:
                write.tunable.computed.tidy(tree, write.target)
        except LunscopeError as error:
            gone.append(str(error))
            continue
        now = write.tunable.present(tree, write.target)
        if force or now in {write.after, write.before} or _fell(write, now) or not (write.before or now):
            ours.append(write)
        else:
            shown = "gone" if now is None else safe_text(short_text(now, 80))
            text = f"{write.tunable.id} of {write.target.name} is {shown}, not {write.after} as it was set"
            others.append((write, text))
    return gone, others, ours


def _fell(write: Write, now: str | None) -> bool:
    """Whether the kernel itself has lowered it, as queue_depth on QUEUE FULL."""
    if not write.tunable.falls_by_itself or now is None:
        return False
    present, ours = signed_number(now), signed_number(write.after)
    return present is not None and ours is not None and present < ours


def _back(tree: KernelTree, write: Write) -> str:
    """Restore one value; returns the problem."""
    tunable, target = write.tunable, write.target
    if not write.before or tunable.present(tree, target) == write.before:
        return ""
    try:
        tunable.restore(tree, target, write.before, write.kept)
    except LunscopeError as error:
        return str(error)
    now = tunable.present(tree, target)
    return "" if now == write.before else f"{tunable.id} of {target.name} is {now}, not {write.before} as before"


def _wanted(tree: KernelTree, effect: SideEffect) -> str:
    """Return what a file is to have after restoring: what it had before, or what others have given it since."""
    now = tree.read(effect.path)
    untouched = now is None or not effect.after or now == effect.after
    return effect.before if untouched or now is None else now


def _effect_back(tree: KernelTree, path: str, wanted: str) -> str:
    if tree.read(path) in {wanted, None}:
        return ""
    try:
        tree.write(path, wanted)
    except LunscopeError as error:
        return str(error)
    now = tree.read(path)
    return "" if now == wanted else f"{path} is {now}, not {wanted} as before"
