"""Random plans: the same seed and number give the same plan."""

from __future__ import annotations

import random
from collections.abc import Sequence
from itertools import combinations

from engine.replacing import replace
from tests.fuzz.stacks.plan import (
    BESIDE,
    FILE_KINDS,
    FIRST,
    MAPPED_KINDS,
    Answer,
    Bytes,
    Kind,
    Layer,
    Made,
    Name,
    Place,
    Plan,
    Use,
    User,
    answer_of,
    bytes_of,
    chain,
    is_file,
    size_mib,
)

_OF_BLOCKS = (Use.MOUNTED, Use.CLAIMED)
"""Uses that files cannot have."""
_DEEPEST = 3
"""Layers of a way at most."""
_MOST_OVERLAYS = 2
"""FILESYSTEM_MAX_STACK_DEPTH in the kernel."""
_COMMANDS = 16
"""One plan of so many is written by the command."""


def draw_plan(seed: int, index: int, *, mapped: bool = False) -> Plan:
    """Draw one plan; `mapped` is whether the kernel has a device mapper.

    Of twelve plans in a row five may be written, one holds data, six are in use. Uses and places take turns.
    """
    dice = random.Random(f"stacks {seed} {index}")
    kind, turn = index % 12, index // 12 * 6 + index % 12 - 6
    if kind == 0:
        plan = Plan(made=dice.choice((Made.FILE, Made.SCRATCH)), destroy=False)
    elif kind == 1:
        plan = _drawn(dice, Answer.WRITTEN, mapped=mapped, blank=True)
    elif kind in {2, 3, 4}:
        user = None if kind == 2 else _user(dice, dice.randrange(1000))
        plan = _drawn(dice, Answer.WRITTEN, user=user, mapped=mapped, beside=kind == 3)
    elif kind == 5:
        plan = _drawn(dice, Answer.REFUSED, mapped=mapped)
    else:
        plan = _drawn(dice, Answer.HARMLESS, user=_user(dice, turn), mapped=mapped)
    by_command = (index + seed) % _COMMANDS == 5
    return replace(plan, command=by_command)


def _user(dice: random.Random, turn: int) -> User:
    uses, places = [*Use], [*Place]
    # Their numbers have no common factor, so that each use meets each place.
    use, place = uses[turn % len(uses)], places[turn % len(places)]
    if use is Use.SWAP and place is Place.USER:
        # Swap belongs to the machine.
        place = Place.MOUNT
    confined = place in {Place.MOUNT, Place.PID} and dice.random() < 0.5
    return User(use, FIRST, place, confined)


def _drawn(
    dice: random.Random,
    answer: Answer,
    *,
    user: User | None = None,
    mapped: bool,
    beside: bool = False,
    blank: bool = False,
) -> Plan:
    while True:
        layers: list[Layer] = []
        target_root = FIRST
        if user:
            needs_block = user.use in _OF_BLOCKS
            at = _add_way(dice, layers, BESIDE if beside else FIRST, block=needs_block, mapped=mapped)
            layers[:] = _made_by(dice, layers, user)
            user = User(user.use, at, user.place, user.confined)
        origin = target_root if beside or not user else _branch(dice, layers, user.at)
        target = _add_way(dice, layers, origin, block=blank, mapped=mapped)
        if not user and dice.random() < 0.5:
            _add_way(dice, layers, _branch(dice, layers, target), block=False, mapped=mapped)
        destroy = not blank and answer is not Answer.REFUSED
        names = [Name.PLAIN, Name.PLAIN, Name.LINK, *([] if is_file(Plan(tuple(layers)), target) else [Name.NODE])]
        plan = Plan(tuple(layers), target, user, Made.NOTHING, dice.choice(names), blank, destroy)
        if _is_wanted(plan, answer):
            return plan


def _is_wanted(plan: Plan, answer: Answer) -> bool:
    if not _can_be_made(plan) or answer_of(plan) is not answer:
        return False
    if answer is not Answer.HARMLESS or plan.user is None:
        return True
    target, used = bytes_of(plan, plan.target), bytes_of(plan, plan.user.at)
    # Most are to share bytes; the others are decided by something in the plan, so that it is drawn once only.
    return target.overlaps(used) or len(plan.layers) >= 2 * _DEEPEST


def _can_be_made(plan: Plan) -> bool:
    parts: dict[int, list[Bytes]] = {}
    for at, layer in enumerate(plan.layers):
        if layer.kind is Kind.PARTITION:
            parts.setdefault(layer.parent, []).append(bytes_of(plan, at))
    overlap = any(first.overlaps(other) for of_one in parts.values() for first, other in combinations(of_one, 2))
    user = plan.user
    if user and user.use is Use.SWAP and is_file(plan, user.at):
        # The kernel does not swap to files of overlays.
        overlap |= any(plan.layers[at].kind in (Kind.UPPER, Kind.LOWER) for at in chain(plan, user.at) if at >= 0)
    overlap |= _is_claimed_twice(plan)
    # What two overlays with one upper folder do is undefined.
    return not overlap and [layer.kind for layer in plan.layers].count(Kind.UPPER) <= 1


def _is_claimed_twice(plan: Plan) -> bool:
    """Whether maps and the user claim one device, or a disk and a partition of it; maps may share theirs."""
    claims = [(layer.parent, layer.kind is Kind.LINEAR) for layer in plan.layers if layer.kind in MAPPED_KINDS]
    if plan.user and plan.user.use in (*_OF_BLOCKS, Use.SWAP):
        claims.append((plan.user.at, False))

    def disk(at: int) -> int:
        return plan.layers[at].parent if at >= 0 and plan.layers[at].kind is Kind.PARTITION else at

    return any(
        (one == other and not (shares and also_shares)) or (one != other and (disk(one) == other or disk(other) == one))
        for (one, shares), (other, also_shares) in combinations(claims, 2)
    )


def _branch(dice: random.Random, layers: Sequence[Layer], at: int) -> int:
    """Choose a layer of a way where another way may begin, or its file."""
    plan = Plan(tuple(layers))
    may = []
    while at >= 0:
        if not (layers[at].theirs and is_file(plan, at)):
            may.append(at)
        at = layers[at].parent
    return dice.choice([*may, at])


def _add_way(dice: random.Random, layers: list[Layer], at: int, *, block: bool, mapped: bool) -> int:
    """Add layers one over the other, at random; returns the last one."""
    for _ in range(dice.randint(0, _DEEPEST)):
        choices = _kinds_over(layers, at, mapped=mapped)
        at = _add(dice, layers, at, dice.choice(choices))
    if block and is_file(Plan(tuple(layers)), at):
        at = _add(dice, layers, at, Kind.LOOP)
    return at


def _kinds_over(layers: Sequence[Layer], at: int, *, mapped: bool) -> list[Kind]:
    below = []
    while at >= 0:
        below.append(layers[at].kind)
        at = layers[at].parent
    if below and below[0] not in FILE_KINDS:
        # The kernel makes no partitions of partitions.
        more = [Kind.PARTITION] * 2 if below[0] is Kind.LOOP else []
        return [Kind.LOOP, *more, *(MAPPED_KINDS if mapped else ())]
    overlays = below.count(Kind.UPPER) + below.count(Kind.LOWER)
    if overlays:
        return [Kind.BIND, Kind.LOOP, Kind.LOOP, *([Kind.LOWER] if overlays < _MOST_OVERLAYS else [])]
    return [Kind.HARD_LINK, Kind.BIND, Kind.UPPER, Kind.UPPER, Kind.LOWER, Kind.LOOP, Kind.LOOP, Kind.LOOP]


def _add(dice: random.Random, layers: list[Layer], at: int, kind: Kind) -> int:
    start = size = 0
    if kind not in FILE_KINDS:
        there = size_mib(Plan(tuple(layers)), at)
        start = dice.choice((0, dice.randrange(there))) if kind is not Kind.THIN else 0
        size = dice.choice((0, dice.randint(1, there - start))) if kind is not Kind.THIN else 0
        if kind is Kind.PARTITION:
            size = size or there - start
    layers.append(Layer(kind, at, start, size))
    return len(layers) - 1


def _made_by(dice: random.Random, layers: Sequence[Layer], user: User) -> list[Layer]:
    """Let the user make the layers of its way itself, from a random one on."""
    first = len(layers) if user.place is Place.OWN else dice.randrange(len(layers) + 1)
    made = []
    for at, layer in enumerate(layers):
        # Partitions and maps are made by who may administer the machine.
        theirs = at >= first and layer.kind not in (Kind.PARTITION, *MAPPED_KINDS)
        made.append(Layer(layer.kind, layer.parent, layer.start_mib, layer.size_mib, theirs))
    return made
