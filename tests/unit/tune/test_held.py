"""Changes that one process holds: on top of each other, undone, flipped, kept, and restored at the end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import LunscopeError, UsageError
from engine.tune.held import HeldChange, HeldChanges, combine_plans
from engine.tune.journal import Journal
from engine.tune.planned_writes import SideEffect, TunePlan, Write, parse_settings
from engine.tune.record import ChangeRecord, State
from engine.tune.registry import find_tunable
from engine.tune.tunable import Target, TunedKind
from tests.fake_kernel import FakeKernel
from tests.unit.tune.hosts import make_host

DISK = Target(TunedKind.DISK, "sda", "block/sda")


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return make_host(tmp_path / "host")


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path / "state")


@pytest.fixture
def held(kernel: FakeKernel, journal: Journal) -> Iterator[HeldChanges]:
    held = HeldChanges(kernel.sysfs, journal)
    yield held
    held.close()


def values(kernel: FakeKernel, file: str) -> list[str]:
    return [(kernel.sysfs / "block" / name / file).read_text().strip() for name in ("sda", "sdb", "loop0")]


def make(held: HeldChanges, scope: str, *settings: str, duration_s: float | None = None) -> HeldChange | None:
    given = parse_settings(settings)
    return held.make(held.plan([scope], given), given, duration_s)


@pytest.mark.slow
def test_changes_of_one_target_go_back_to_the_first_values(kernel: FakeKernel, held: HeldChanges) -> None:
    make(held, "lun:sda", "nr_requests=64")
    make(held, "loop0", "nr_requests=32")
    make(held, "sda", "nr_requests=16", "read_ahead_kb=8")
    assert values(kernel, "queue/nr_requests") == ["16", "64", "32"]
    assert len(held.in_force) == 2, "the third includes the first"
    held.undo()
    assert values(kernel, "queue/nr_requests") == ["64", "64", "32"]
    assert values(kernel, "queue/read_ahead_kb") == ["128", "128", "128"]
    records = held.close()
    assert {record.state for record in records} == {State.REVERTED}
    assert values(kernel, "queue/nr_requests") == ["128", "128", "128"]
    with pytest.raises(LunscopeError, match="being left"):
        make(held, "sda", "nr_requests=64")


@pytest.mark.slow
def test_flip_goes_to_and_fro(kernel: FakeKernel, held: HeldChanges) -> None:
    make(held, "sda", "nr_requests=64")
    make(held, "sda", "nr_requests=32")
    for wanted in ("64", "32", "64", "32"):
        held.flip()
        assert values(kernel, "queue/nr_requests")[0] == wanted
    make(held, "sda", "nr_requests=8")
    held.flip()
    assert values(kernel, "queue/nr_requests")[0] == "32", "a change ends what a flip makes again"


def test_a_change_back_leaves_nothing_in_force(kernel: FakeKernel, held: HeldChanges) -> None:
    make(held, "sda", "nr_requests=64")
    assert make(held, "sda", "nr_requests=128") is None
    assert not held.in_force
    assert held.undo() is None
    assert values(kernel, "queue/nr_requests")[0] == "128"


@pytest.mark.slow
def test_a_failure_leaves_what_was_in_force(kernel: FakeKernel, held: HeldChanges) -> None:
    make(held, "sda", "nr_requests=64")
    with pytest.raises(UsageError, match="not legal"):
        make(held, "sda", "nr_requests=100000")
    given = parse_settings(["nr_requests=32"])
    plan = held.plan(["sda", "sdb"], given)
    (kernel.sysfs / "block/sdb/queue/nr_requests").write_text("99\n")
    with pytest.raises(LunscopeError, match="it has just become 99"):
        held.make(plan, given, None)
    assert values(kernel, "queue/nr_requests")[0] == "64"
    assert len(held.in_force) == 1


def test_kept_ones_stay(kernel: FakeKernel, held: HeldChanges, journal: Journal) -> None:
    make(held, "sda", "nr_requests=64")
    record = held.keep()
    assert isinstance(record, ChangeRecord)
    assert record.state is State.KEPT
    assert 'ATTR{queue/nr_requests}="64"' in held.configuration().files[0].text
    assert held.close() == []
    assert values(kernel, "queue/nr_requests")[0] == "64"
    assert not journal.is_held(record.number)


def test_another_process_is_refused(kernel: FakeKernel, held: HeldChanges, journal: Journal) -> None:
    """The second one reports who holds it, and what."""
    make(held, "sda", "nr_requests=64")
    other = HeldChanges(kernel.sysfs, journal)
    with pytest.raises(LunscopeError, match=r"sda: held by change 1: nr_requests 128 -> 64 on sda"):
        make(other, "lun:sda", "nr_requests=32")
    other.close()
    assert values(kernel, "queue/nr_requests")[:2] == ["64", "128"]


def test_what_the_kernel_sets_anew_is_written_again() -> None:
    """A depth as before all changes is none of the scheduler that was set since."""
    scheduler, requests = find_tunable("scheduler"), find_tunable("nr_requests")
    effect = SideEffect(DISK, 1, "block/sda/queue/nr_requests", "128", "256")
    first = TunePlan((Write(scheduler, DISK, 1, "none", "mq-deadline"),), (effect,))
    second = TunePlan((Write(requests, DISK, 1, "256", "128"),))
    found = combine_plans([first], second)
    assert [(one.tunable.id, one.before, one.after) for one in found.writes] == [
        ("scheduler", "none", "mq-deadline"),
        ("nr_requests", "128", "128"),
    ]
    assert not found.effects


def test_files_of_a_scheduler_go_with_it() -> None:
    scheduler, expire = find_tunable("scheduler"), find_tunable("iosched/read_expire")
    first = TunePlan((Write(scheduler, DISK, 1, "none", "mq-deadline"),))
    tuned = combine_plans([first], TunePlan((Write(expire, DISK, 1, "500", "100"),)))
    assert [one.before for one in tuned.writes] == ["none", ""]
    back = combine_plans([tuned], TunePlan((Write(scheduler, DISK, 1, "mq-deadline", "none"),)))
    assert not back.writes


def test_a_depth_stays_with_a_later_scheduler() -> None:
    scheduler, requests = find_tunable("scheduler"), find_tunable("nr_requests")
    expire = find_tunable("iosched/read_expire")
    path = expire.path(DISK)
    first = TunePlan((Write(requests, DISK, 1, "128", "16"), Write(expire, DISK, 1, "500", "100")))
    effects = (SideEffect(DISK, 1, requests.path(DISK), "16"), SideEffect(DISK, 1, path, "100"))
    found = combine_plans([first], TunePlan((Write(scheduler, DISK, 1, "mq-deadline", "none"),), effects))
    assert [(one.tunable.id, one.before, one.after) for one in found.writes] == [
        ("scheduler", "mq-deadline", "none"),
        ("nr_requests", "128", "16"),
    ]
    assert [(one.path, one.before) for one in found.effects] == [(path, "500")]
