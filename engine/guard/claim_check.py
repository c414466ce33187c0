"""A check, cheap enough for every second, that nothing has claimed what shares bytes with written targets."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from engine.guard.claims import Probe, Relative, below, claimed_relative, is_claimed, probes_of, stays_claimed
from engine.guard.identity import is_gone
from engine.guard.permission import cannot_ask, claimed_relative_refusal, subject
from engine.guard.target import OpenTarget, TargetKind
from engine.guard.usage_snapshot import UsageSnapshot
from engine.hostfs.kernel_files import Roots, names_in, start_of, whole
from engine.hostfs.sysblock import BlockDevice, look_up
from engine.hostfs.writers import Writers

_UNANSWERED_S = 10.0
"""How long a device may exist without a way to check it, as nodes appear a moment later than devices, and how
long one that has left the target's stack may stay claimed."""
_PAUSES_PER_LEARNING = 9
"""Pause after a look at all users, in times that it took: claims are checked meanwhile, however often mounts change."""

_Fingerprint = tuple[object, ...]


class _Question(Struct, frozen=True):
    """What to check for one node of a target."""

    shown: str
    probe: Probe
    held: set[int]


class ClaimCheck:
    """Holds what to check, and rescans it when block devices, loop devices, stacks or swap have changed.

    `run` may be called by a second thread while the first is stuck in the kernel, which happens with a device whose
    driver recovers from errors: what is being checked or rescanned is skipped then.
    """

    def __init__(self, targets: Sequence[OpenTarget], roots: Roots | None = None) -> None:
        self._targets = tuple(targets)
        self._roots = roots or Roots()
        self._questions: tuple[_Question, ...] = ()
        self._stack: tuple[BlockDevice, ...] = ()
        """The devices below the targets, with the targets."""
        self._leaving_since_s: dict[int, float] = {}
        """What stood under a target before, until it has been free once."""
        self._fingerprint: _Fingerprint | None = None
        self._learning = threading.Lock()
        self._being_asked: set[int] = set()
        self._unanswered_since_s: dict[int, float] = {}
        self._mounts_changed = False
        self._mounts_due_s = 0.0

    def run(self, *, mounts_changed: bool = False) -> None:
        """Check everything.

        Raises:
            RefusedError: it is in use or claimed, or it could not be checked for 10 s.
        """
        self._mounts_changed |= mounts_changed
        is_due = self._mounts_changed and time.monotonic() >= self._mounts_due_s
        if is_due or self._fingerprint != self._take_fingerprint():
            self._learn()
        if self._find_claim(is_claimed):
            # A path that went into the target's own map meanwhile is no claim by others: learn before refusing.
            self._learn()
            if claim := self._find_claim(stays_claimed):
                # A mount claims before it is in any mount table: if it is there by now, it is named.
                self._learn()
                question, relative = claim
                raise claimed_relative_refusal(question.shown, relative)

    def _find_claim(self, put: Callable[[BlockDevice, Path], bool]) -> tuple[_Question, Relative] | None:
        for question in self._questions:
            ask = partial(self._ask, put, question.shown)
            if relative := claimed_relative(question.probe, question.held, ask):
                return question, relative
        return None

    def _ask(self, put: Callable[[BlockDevice, Path], bool], shown: str, device: BlockDevice) -> bool:
        if device.number in self._being_asked:
            return False
        self._being_asked.add(device.number)
        try:
            answer = put(device, self._roots.devices)
        except OSError as error:
            self._note_unanswered(shown, device, error)
            return False
        finally:
            self._being_asked.discard(device.number)
        self._unanswered_since_s.pop(device.number, None)
        if not answer:
            self._leaving_since_s.pop(device.number, None)
        return answer and not self._is_leaving(device)

    def _note_unanswered(self, shown: str, device: BlockDevice, error: OSError) -> None:
        if look_up(self._roots.sysfs, device.number) is None:
            return
        now_s = time.monotonic()
        if now_s - self._unanswered_since_s.setdefault(device.number, now_s) > _UNANSWERED_S:
            raise cannot_ask(shown, device, error)

    def _learn(self) -> None:
        """Find what uses the targets, except writers, and what to check from now on."""
        if not self._learning.acquire(blocking=False):
            return
        began_s, self._mounts_changed = time.monotonic(), False
        try:
            fingerprint = self._take_fingerprint()
            usage = UsageSnapshot(self._roots, writers=Writers())
            for target in self._targets:
                target.refuse_new_use(usage)
            nodes = [node for target in self._targets for node in target.nodes if _is_claimed_by_us(node)]
            self._questions = tuple(question for node in nodes for question in _questions_of(usage, node))
            self._take_stack([device for node in nodes for device in _stack_of(usage, node)])
            # Read before, so that a change meanwhile shows; again only where the stack was not known yet.
            self._fingerprint = fingerprint if self._fingerprint else self._take_fingerprint()
        finally:
            now_s = time.monotonic()
            self._mounts_due_s = now_s + _PAUSES_PER_LEARNING * (now_s - began_s)
            self._learning.release()

    def _take_stack(self, stack: Sequence[BlockDevice]) -> None:
        """Update the devices below the targets, and when those no longer below them were last seen."""
        numbers = {device.number for device in stack}
        gone = {device.number for device in self._stack} - numbers
        self._leaving_since_s |= dict.fromkeys(gone, time.monotonic())
        for number in numbers:
            self._leaving_since_s.pop(number, None)
        self._stack = tuple(stack)

    def _is_leaving(self, device: BlockDevice) -> bool:
        """Whether its claim may still be that of the stack it was in, which is released after its link in sysfs.

        The kernel waits for others who have the device open just then (bdev_release, open_mutex), which takes as long
        as a path is slow.
        """
        since_s = self._leaving_since_s.get(device.number)
        return since_s is not None and time.monotonic() - since_s < _UNANSWERED_S

    def _take_fingerprint(self) -> _Fingerprint:
        """Take what changes when another device may show the same bytes: any device, loop device, member or swap."""
        blocks = f"{self._roots.sysfs}/class/block"
        names = names_in(blocks)
        loops = (name for name in names if name.startswith("loop") and name[4:].isdigit())
        return (
            frozenset(names),
            frozenset((name, *_loop_facts(f"{blocks}/{name}")) for name in loops),
            tuple(frozenset(names_in(f"{device.disk_folder}/slaves")) for device in self._stack),
            whole(f"{self._roots.procfs}/swaps"),
        )


def _is_claimed_by_us(node: OpenTarget) -> bool:
    return node.writable and node.kind is TargetKind.BLOCK and not is_gone(node.identity)


_LOOP_FACTS = ("diskseq", "size", "loop/offset")


def _loop_facts(folder: str) -> tuple[bytes, ...]:
    """Read what a loop device shows: which file, and which bytes of it."""
    backing = start_of(f"{folder}/loop/backing_file", 4096)
    return (backing, *(start_of(f"{folder}/{name}") for name in _LOOP_FACTS if backing))


def _questions_of(usage: UsageSnapshot, node: OpenTarget) -> Iterator[_Question]:
    device = look_up(usage.roots.sysfs, node.identity.rdev)
    if device:
        for probe in probes_of(usage, device, node.held):
            yield _Question(subject(node.name, device.node), probe, node.held)


def _stack_of(usage: UsageSnapshot, node: OpenTarget) -> Iterator[BlockDevice]:
    device = look_up(usage.roots.sysfs, node.identity.rdev)
    if device:
        yield from (device, *below(usage, device))
