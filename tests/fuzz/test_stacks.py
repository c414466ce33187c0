"""Plans of stacks: what is drawn, what is right for each, and that wrong guards and what is left behind are found."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests import needs
from tests.fuzz.stacks import LEAST_IN_TEST
from tests.fuzz.stacks.drawing import draw_plan
from tests.fuzz.stacks.plan import (
    BESIDE,
    FIRST,
    Answer,
    Bytes,
    Kind,
    Layer,
    Made,
    Place,
    Plan,
    Use,
    User,
    answer_of,
    bytes_of,
    in_words,
    parse_plan,
    plan_text,
)
from tests.fuzz.stacks.workplace import folder_prefix

LOOP, PART = Layer(Kind.LOOP), Layer(Kind.PARTITION, 0, 1, 1)
SECOND_PART = Layer(Kind.PARTITION, 0, 2, 1)
OPEN = User(Use.OPEN, FIRST)
PROJECT = Path(__file__).parents[2]


def test_the_same_seed_draws_the_same_plans() -> None:
    plans = [draw_plan(3, index) for index in range(40)]
    assert plans == [draw_plan(3, index) for index in range(40)]
    assert plans != [draw_plan(4, index) for index in range(40)]
    assert [parse_plan(plan_text(plan)) for plan in plans] == plans
    assert len(set(map(in_words, plans))) > 30


@pytest.mark.parametrize("count", [LEAST_IN_TEST, 120])
def test_a_third_is_free_and_every_use_place_and_layer_is_met(count: int) -> None:
    plans = [draw_plan(1, index, mapped=True) for index in range(count)]
    answers = Counter(map(answer_of, plans))
    assert answers[Answer.WRITTEN] * 3 >= count
    assert answers[Answer.REFUSED] * 15 >= count
    assert {layer.kind for plan in plans for layer in plan.layers} == {*Kind}
    assert {plan.made for plan in plans} == {*Made}
    uses = Counter((plan.user.use, plan.user.place) for plan in plans if plan.user)
    assert {use for use, _ in uses} == {*Use}
    assert {place for _, place in uses} == {*Place}
    if count > LEAST_IN_TEST:
        # Swap belongs to the machine.
        assert {*uses} == {(use, place) for use in Use for place in Place} - {(Use.SWAP, Place.USER)}
    shared = [
        plan for plan in plans if plan.user and bytes_of(plan, plan.target).overlaps(bytes_of(plan, plan.user.at))
    ]
    assert len(shared) * 4 >= count


def test_where_bytes_are_stored() -> None:
    layers = (LOOP, PART, Layer(Kind.LOOP, 1), Layer(Kind.LOWER, FIRST), Layer(Kind.LOOP, 3, 2, 5), SECOND_PART)
    plan = Plan(layers)
    assert bytes_of(plan, FIRST) == bytes_of(plan, 0) == Bytes(FIRST, 0, 4)
    assert bytes_of(plan, 2) == Bytes(FIRST, 1, 2)
    assert bytes_of(plan, 4) == Bytes(3, 2, 4), "of a copy, and no longer than that"
    assert not bytes_of(plan, 2).overlaps(bytes_of(plan, 5))


@pytest.mark.parametrize(
    ("plan", "answer"),
    [
        (Plan(), Answer.WRITTEN),
        (Plan(destroy=False), Answer.REFUSED),
        (Plan(destroy=False, blank=True), Answer.REFUSED),
        (Plan((LOOP,), 0, destroy=False, blank=True), Answer.WRITTEN),
        (Plan((LOOP,), 0, destroy=False), Answer.REFUSED),
        (Plan((LOOP, Layer(Kind.THIN, 0)), 1, destroy=False), Answer.WRITTEN),
        (Plan((LOOP,), 0, OPEN), Answer.HARMLESS),
        (Plan((LOOP,), 0, User(Use.OPEN, BESIDE)), Answer.WRITTEN),
        (Plan((LOOP,)), Answer.HARMLESS),
        (Plan((LOOP, Layer(Kind.LOOP, 0)), 0), Answer.HARMLESS),
        (Plan((LOOP, LOOP), 0), Answer.WRITTEN),
        (Plan((LOOP, PART, SECOND_PART), 2, User(Use.OPEN, 1)), Answer.WRITTEN),
        (Plan((LOOP, PART, SECOND_PART), 0, User(Use.OPEN, 1)), Answer.HARMLESS),
        (Plan(made=Made.FILE, destroy=False), Answer.WRITTEN),
    ],
)
def test_what_is_right(plan: Plan, answer: Answer) -> None:
    assert answer_of(plan) is answer, in_words(plan)


def _tried(*words: str, before: str = "") -> subprocess.CompletedProcess[str]:
    script = f"import runpy, sys; from unittest.mock import patch\n{before}\nsys.argv[0] = ''\n"
    script += "runpy.run_module('tests.fuzz.stacks', run_name='__main__', alter_sys=True)"
    return subprocess.run(
        [sys.executable, "-c", script, *words], capture_output=True, text=True, check=False, cwd=PROJECT, timeout=120
    )


_ASKS_NOBODY = """
for name in ("guard.claiming.permission.refuse_used", "guard.permission.refuse_used", "guard.target.refuse_used",
             "guard.permission.refuse_claimed_elsewhere", "guard.target.refuse_claimed_elsewhere",
             "guard.permission._refuse_hidden_writer", "guard.permission._refuse_data"):
    patch(f"engine.{name}").start()
patch("engine.guard.claim_check.ClaimCheck.run").start()
"""
_REFUSES_ALL = """
from engine.errors import RefusedError
patch("engine.guard.permission.refuse_used", side_effect=RefusedError("never")).start()
"""


@pytest.mark.alone
@needs.root
@needs.loop
@needs.mkfs_ext4
def test_a_guard_that_asks_nobody_and_one_that_refuses_all_are_found_out() -> None:
    used = Plan((LOOP, LOOP), 0, User(Use.OPEN, 1, Place.MOUNT))
    plans = [plan_text(used), plan_text(Plan((LOOP,), 0, destroy=False)), plan_text(Plan((LOOP,), 0))]
    said = _tried(*plans, before=_ASKS_NOBODY)
    assert said.returncode == 1, said.stderr
    assert re.findall(r"WRONG: (.*)|(written)", said.stdout) == [
        ("the bytes of the user changed", ""),
        ("data was overwritten without --destroy-data", ""),
        ("", "written"),
    ]
    said = _tried(*plans, before=_REFUSES_ALL)
    assert re.findall(r"WRONG: (.*)", said.stdout) == ["nobody uses the bytes, yet they are refused: never"], (
        said.stderr
    )


@pytest.mark.alone
@needs.root
@needs.loop
@needs.mkfs_ext4
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_outlives_a_run_that_is_ended(number: signal.Signals, tmp_path: Path) -> None:
    running = subprocess.Popen(
        [sys.executable, "-m", "tests.fuzz.stacks", "--seed", "6", "--count", "10000"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=PROJECT,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    prefix = folder_prefix(running.pid)
    assert running.stdout is not None
    for _ in range(30):
        running.stdout.readline()
    running.send_signal(number)
    running.communicate()
    deadline_s = time.monotonic() + 20.0
    while left := _left_of(prefix):
        assert time.monotonic() < deadline_s, left
        time.sleep(0.05)
    for folder in Path("/dev/shm").glob(f"{prefix}*"):
        assert number is signal.SIGKILL
        shutil.rmtree(folder)


def _left_of(prefix: str) -> list[str]:
    """Loop devices, swap and mounts in folders with this prefix, and processes that still have them."""
    sources = [*Path("/sys/block").glob("loop*/loop/backing_file"), Path("/proc/swaps")]
    sources += Path("/proc").glob("[0-9]*/mountinfo")
    found = []
    for path in sources:
        try:
            found += [f"{path}: {line}" for line in path.read_text().splitlines() if prefix in line]
        except OSError:
            continue
    return found
