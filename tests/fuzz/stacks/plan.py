"""Plans of stacks: who keeps which bytes in use by which way, and by which other way they are to be written."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

import msgspec
from msgspec import Struct

STORE_MIB = 4
"""Size of each of the two files that everything is stored in."""
FIRST, BESIDE = -1, -2
"""Parents that are no layers: the file that is stored in, and another one in the same folder."""


class Kind(StrEnum):
    """How a layer shows the bytes of its parent."""

    HARD_LINK = "hard link"
    BIND = "bind mount"
    UPPER = "overlay over its upper folder"
    LOWER = "overlay over a lower folder"
    """Who opens the file for writing gets a copy of it."""
    LOOP = "loop"
    PARTITION = "partition"
    LINEAR = "dm-linear"
    THIN = "dm-thin"


FILE_KINDS = (Kind.HARD_LINK, Kind.BIND, Kind.UPPER, Kind.LOWER)
MAPPED_KINDS = (Kind.LINEAR, Kind.THIN)
COPIES = (Kind.LOWER, Kind.THIN)
"""Layers whose bytes are stored anew, elsewhere than those of their parent."""


class Layer(Struct, frozen=True, omit_defaults=True):
    """One way to the bytes of its parent."""

    kind: Kind
    parent: int = FIRST
    """Position among the layers, FIRST or BESIDE."""
    start_mib: int = 0
    size_mib: int = 0
    """0: to the end of the parent."""
    theirs: bool = False
    """Made in the namespaces of the user."""


class Use(StrEnum):
    """What a user of the bytes does with them."""

    MOUNTED = "mounted"
    CLAIMED = "claimed"
    OPEN = "open"
    MAPPED = "mapped"
    MAPPED_READ_ONLY = "mapped for reading only"
    """Shared, by a descriptor for writing that was closed: mprotect makes it writable."""
    RING = "registered with a ring"
    SWAP = "swapped on"


class Place(StrEnum):
    """The namespaces in which a user lives."""

    OWN = "own namespaces"
    MOUNT = "mount namespace"
    USER = "user namespace"
    PID = "pid namespace"


class User(Struct, frozen=True, omit_defaults=True):
    """Who keeps bytes in use."""

    use: Use
    at: int
    """Layer by which they are used, FIRST or BESIDE."""
    place: Place = Place.OWN
    confined: bool = False
    """Whether its root is a folder."""


class Made(StrEnum):
    """Targets that the load makes itself."""

    NOTHING = ""
    FILE = "new file"
    SCRATCH = "scratch file"


class Name(StrEnum):
    """By what name the target is given."""

    PLAIN = ""
    LINK = "symbolic link"
    NODE = "node of its own"


class Plan(Struct, frozen=True, omit_defaults=True):
    """A stack, its user if it has one, and what is to be written."""

    layers: tuple[Layer, ...] = ()
    target: int = FIRST
    user: User | None = None
    made: Made = Made.NOTHING
    name: Name = Name.PLAIN
    blank: bool = False
    """Zeros everywhere, instead of data of nobody knows what format."""
    destroy: bool = True
    """Whether --destroy-data is given."""
    command: bool = False
    """Whether `lunscope run` is to write, and not the guard of this process with what it opened."""


class Answer(StrEnum):
    """What is right for a plan."""

    WRITTEN = "written"
    """Nobody uses the bytes, and it is allowed: to refuse would be wrong."""
    REFUSED = "refused"
    """It holds data, and that these may be destroyed was not said."""
    HARMLESS = "harmless"
    """Refused, or the bytes of the user are unchanged."""


class Bytes(Struct, frozen=True):
    """Where a layer's bytes are stored."""

    store: int
    """FIRST, BESIDE, or the layer that has a copy."""
    start_mib: int
    end_mib: int

    def overlaps(self, other: Bytes) -> bool:
        return self.store == other.store and self.start_mib < other.end_mib and other.start_mib < self.end_mib


def bytes_of(plan: Plan, at: int) -> Bytes:
    """Where the bytes that a layer shows are stored."""
    if at < 0:
        return Bytes(at, 0, STORE_MIB)
    layer = plan.layers[at]
    within = bytes_of(plan, layer.parent)
    if layer.kind in COPIES:
        return Bytes(at, 0, within.end_mib - within.start_mib)
    start = within.start_mib + layer.start_mib
    end = min(start + layer.size_mib, within.end_mib) if layer.size_mib else within.end_mib
    return Bytes(within.store, start, end)


def size_mib(plan: Plan, at: int) -> int:
    found = bytes_of(plan, at)
    return found.end_mib - found.start_mib


def is_file(plan: Plan, at: int) -> bool:
    return at < 0 or plan.layers[at].kind in FILE_KINDS


def chain(plan: Plan, at: int) -> Iterator[int]:
    """A layer and what it is made of, down to the file."""
    while at >= 0:
        yield at
        at = plan.layers[at].parent
    yield at


def root_of(plan: Plan, at: int) -> int:
    return [*chain(plan, at)][-1]


def answer_of(plan: Plan) -> Answer:
    """What is right; HARMLESS wherever reasons to refuse may be given although nobody would be harmed."""
    if plan.made:
        return Answer.WRITTEN
    if not (_is_beside(plan) and _is_top(plan)):
        return Answer.HARMLESS
    if plan.destroy or (_is_blank(plan) and not is_file(plan, plan.target)):
        return Answer.WRITTEN
    return Answer.REFUSED


def _is_blank(plan: Plan) -> bool:
    """Whether the target reads as zeros: a thin volume to which nothing was written does so, whatever is below it."""
    store = bytes_of(plan, plan.target).store
    return plan.blank or (store >= 0 and plan.layers[store].kind is Kind.THIN)


def _is_beside(plan: Plan) -> bool:
    """Whether the user has other bytes: another file, or another partition of the disk."""
    if plan.user is None or root_of(plan, plan.user.at) != root_of(plan, plan.target):
        return True
    first, second = [*chain(plan, plan.user.at)], [*chain(plan, plan.target)]
    branches = [[at for at in one if at not in other] for one, other in ((first, second), (second, first))]
    are_partitions = all(branch and plan.layers[branch[-1]].kind is Kind.PARTITION for branch in branches)
    return are_partitions and not bytes_of(plan, branches[0][-1]).overlaps(bytes_of(plan, branches[1][-1]))


def _is_top(plan: Plan) -> bool:
    """Whether no other device is built on the target, or on a device that shows the same bytes."""
    own = [*chain(plan, plan.target)]
    for at, layer in enumerate(plan.layers):
        is_built = layer.kind in (Kind.LOOP, *MAPPED_KINDS)
        if at in own or not is_built or root_of(plan, at) != own[-1]:
            continue
        on_a_device = not is_file(plan, layer.parent)
        if (on_a_device and not _is_apart(plan, layer.parent)) or is_file(plan, plan.target):
            return False
    return True


def _is_apart(plan: Plan, at: int) -> bool:
    """Whether a device is on a partition that has nothing to do with the target's."""
    beside = Plan(plan.layers, plan.target, User(Use.OPEN, at))
    return _is_beside(beside)


def plan_text(plan: Plan) -> str:
    """One line that `python -m tests.fuzz.stacks` takes."""
    return msgspec.json.encode(plan).decode()


def parse_plan(text: str | bytes) -> Plan:
    return msgspec.json.decode(text, type=Plan)


def in_words(plan: Plan) -> str:
    """What a plan is, for people."""
    if plan.made:
        return f"target: {plan.made}"
    target = f"target: {_way(plan, plan.target)}" + (f" by a {plan.name}" if plan.name else "")
    others = [target, "blank" if plan.blank else "", "" if plan.destroy else "without --destroy-data"]
    others.append("by lunscope run" if plan.command else "")
    user = plan.user
    if user:
        place = f" in a {user.place}" if user.place is not Place.OWN else ""
        others.insert(0, f"{user.use}{place}{' with a root of its own' * user.confined}: {_way(plan, user.at)}")
    return "; ".join(filter(None, others))


def _way(plan: Plan, at: int) -> str:
    words = []
    for each in chain(plan, at):
        if each < 0:
            words.append("file" if each == FIRST else "file beside")
            break
        layer = plan.layers[each]
        where = f" at {layer.start_mib}+{layer.size_mib or 'rest'} MiB" if layer.kind not in FILE_KINDS else ""
        words.append(f"{layer.kind}{where} [{each}{', theirs' * layer.theirs}]")
    return " of ".join(words)
