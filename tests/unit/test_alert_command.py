"""The command of alerts: what it is given, that it never holds anything up, and that its failures are reported."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from collectors.alerts.alert_settings import AlertSettings
from collectors.alerts.command import CommandRunner, environment_of
from collectors.alerts.parse import parse_rule
from collectors.alerts.service import AlertService
from collectors.model import Step
from engine.events import Event, EventKind
from tests.unit import raw_samples as raw

PATIENCE_S = 60.0
SLEEP = (sys.executable, "-c", "import time; time.sleep(600)")


def alert(name: str = "sda") -> Event:
    data: dict[str, str | float | None] = {
        "rule": "slow",
        "change": "raised",
        "object": name,
        "value": 35.0,
        "worst": None,
    }
    return Event(EventKind.ALERT, f"alert slow raised: {name}", 1, 1, data)


def until(condition: Callable[[], object]) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline_s, "it never came to that"
        time.sleep(0.01)


def problems_of(runner: CommandRunner) -> list[str]:
    found: list[str] = []

    def reported() -> list[str]:
        found.extend(event.text for event in runner.take_events())
        return found

    until(reported)
    return found


def test_facts_are_variables_and_printable() -> None:
    variables = environment_of(alert("\x1b[2Jsda\0\n"))
    assert variables["LUNSCOPE_ALERT_RULE"] == "slow"
    assert variables["LUNSCOPE_ALERT_VALUE"] == "35.0"
    assert variables["LUNSCOPE_ALERT_WORST"] == ""
    assert all(value.isprintable() for value in variables.values())


def test_a_hostile_name_is_an_argument_of_nothing(tmp_path: Path) -> None:
    out = tmp_path / "out"
    program = f"import os; open({str(out)!r}, 'a').write(os.environ['LUNSCOPE_ALERT_OBJECT'] + '|')"
    runner = CommandRunner((sys.executable, "-c", program))
    name = f"x'; touch {tmp_path}/hit; $(touch {tmp_path}/hit) `touch {tmp_path}/hit`"
    runner.offer(alert(name))
    until(lambda: out.exists() and out.read_text().endswith("|"))
    assert out.read_text() == f"{name}|"
    assert not (tmp_path / "hit").exists()


def test_a_command_that_is_not_there_or_fails_is_reported_in_one_line() -> None:
    runner = CommandRunner(("/nonexistent/notify",))
    runner.offer(alert())
    assert problems_of(runner) == ["alert command /nonexistent/notify: No such file or directory: check its path"]
    failing = CommandRunner((sys.executable, "-c", "import sys; sys.exit('no\\x1b[31m mail')"))
    failing.offer(alert())
    (problem,) = problems_of(failing)
    assert problem.endswith(r"exit 1: no\x1b[31m mail")


def test_a_command_that_hangs_is_killed() -> None:
    runner = CommandRunner(SLEEP, limit_s=0.1)
    runner.offer(alert())
    (problem,) = problems_of(runner)
    assert problem.endswith("killed, it ran longer than 0.1 s")


def test_alerts_beyond_the_rate_are_left_out_and_counted() -> None:
    runner = CommandRunner(SLEEP, limit_s=0.1, most=2)
    for _ in range(5):
        runner.offer(alert())
    texts = [event.text for event in runner.take_events()]
    assert "alert command not run for 3 alerts: at most 2 a minute, one at a time" in texts


def test_the_service_adds_alerts_and_problems_to_the_samples() -> None:
    rules = (parse_rule("disks iops>10 for 0s"),)
    service = AlertService(AlertSettings(rules, command=("/nonexistent/notify",)))
    who = raw.rows("vda")
    samples = [raw.sample(at, disks=raw.disks(who, {"reads": 100 * at})) for at in range(2)]
    assert service.step(Step(None, samples[0])).current is samples[0]
    step = service.step(Step(samples[0], samples[1]))
    (event,) = step.current.events
    assert event.text == "alert iops raised: vda iops 100 /s, limit >10 /s"
    assert step.frame is not None
    assert step.frame.events == step.current.events
    assert (service.raised, service.status[-1].count) == (1, 1)
    later: list[Event] = []

    def reported() -> bool:
        last = raw.sample(2 + len(later), disks=raw.disks(who, {"reads": 300}))
        later.extend(service.step(Step(samples[1], last)).current.events)
        return any(event.kind is EventKind.MONITOR for event in later)

    until(reported)
    service.close()
