"""What the verb `sweep` makes of its arguments: whether it has a screen, and which axes a job file gives."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner

import tui.commands.sweep as verb
import tui.headless.sweep as headless
from engine.study.order import StudyOrder
from engine.sweep.plan import SweepPlan
from engine.sweep.runner import SweepResult

TERMINAL = SimpleNamespace(isatty=lambda: True)


@pytest.mark.parametrize("axes", [("--vary", "qd=1,2", "--open-loop"), ("--slo", "p99<=5ms"), ("--vary", "rate=..100")])
@pytest.mark.parametrize(("option", "has_screen"), [((), True), (("--headless",), False), (("--json",), False)])
def test_rates_and_open_loops_have_a_screen(
    axes: tuple[str, ...], option: tuple[str, ...], has_screen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[bool] = []

    def search(_job: Any, _asked: Any, _permissions: Any, output: Any) -> int:
        seen.append(output.on_screen is not None)
        return 0

    monkeypatch.setattr(verb, "sys", SimpleNamespace(stdin=TERMINAL, stdout=TERMINAL))
    monkeypatch.setattr(verb, "search_rates", search)
    done = CliRunner().invoke(verb.command, [*axes, *option], standalone_mode=False)
    assert done.exception is None
    assert seen == [has_screen]


def _job(tmp_path: Path, text: str, name: str = "a.ndisk") -> Path:
    path = tmp_path / name
    path.write_text(text)
    return path


NDISK = "NBROFPROC -> 8 1 4 4\nDURATION -> 1\nBUCKETS -> .002 .005\nRECSIZE -> 4096\n"


@pytest.mark.parametrize(
    ("vary", "axes", "says"),
    [
        ((), "qd=1,4,8", "qd=1,4,8: the steps of the job file"),
        (("--vary", "bs=4k,8k"), "qd=1,4,8 x bs=4k,8k", "qd=1,4,8: the steps of the job file"),
        (("--vary", "qd=2..16"), "qd=2..16", "the steps of the job file, qd=1,4,8, are replaced by --vary"),
    ],
)
def test_steps_of_a_job_file_are_an_axis(
    vary: tuple[str, ...], axes: str, says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[SweepPlan] = []

    def measure(order: StudyOrder, _watching: Any, *, as_json: bool) -> int:
        assert isinstance(order.first.plan, SweepPlan)
        seen.append(order.first.plan)
        return int(as_json)

    monkeypatch.setattr(headless, "measure_order", measure)
    monkeypatch.setattr(headless, "go_on_in_child", lambda: None)
    done = CliRunner().invoke(
        verb.command, [str(_job(tmp_path, NDISK)), *vary, "--headless"], standalone_mode=False, catch_exceptions=False
    )
    (plan,) = seen
    assert " x ".join(axis.text for axis in plan.axes) == axes
    assert (plan.job.total_queue_depth, plan.job.runtime_s) == (True, None)
    assert says in done.output
    assert "histogram of response times are not reported" in done.output


def test_response_times_that_a_sweep_does_not_report_are_named_without_steps_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(headless, "measure_order", lambda _order, _watching, as_json: int(as_json))
    monkeypatch.setattr(headless, "go_on_in_child", lambda: None)
    job = _job(tmp_path, "NBROFPROC -> 8\nRESPONSETIME -> .002\nRECSIZE -> 4096\n")
    done = CliRunner().invoke(
        verb.command, [str(job), "--vary", "bs=4k,8k", "--headless"], standalone_mode=False, catch_exceptions=False
    )
    assert done.output.count("histogram of response times are not reported") == 1


@pytest.mark.parametrize("axes", [("--vary", "qd=1,2"), ("--preset", "skytap")])
def test_jobs_in_which_several_knobs_turn_are_refused(axes: tuple[str, ...], tmp_path: Path) -> None:
    text = 'schema = "lunscope.scenario/1"\n[job]\nruntime = "9s"\n[[turn]]\nat = "1s"\nqd = 2\nbs = "8k"\n'
    path = _job(tmp_path, text, "a.toml")
    done = CliRunner().invoke(verb.command, [str(path), *axes, "--headless"], standalone_mode=False)
    assert "in which one knob turns at most" in str(done.exception)


@pytest.mark.parametrize(
    ("given", "axes"),
    [((), "qd=1..128 x stripe_width=1,2"), (("--vary", "qd=1,8", "--stripe-width", "2"), "qd=1,8")],
)
def test_a_need_is_a_sweep_over_disks_and_depths(
    given: tuple[str, ...], axes: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[StudyOrder] = []

    def measure(order: StudyOrder, _watching: Any, *, as_json: bool) -> int:
        seen.append(order)
        return int(as_json)

    monkeypatch.setattr(headless, "measure_order", measure)
    monkeypatch.setattr(headless, "go_on_in_child", lambda: None)
    targets = [word for name in "ab" for word in ("--target", str(tmp_path / name))]
    CliRunner().invoke(
        verb.command,
        [*targets, "--need", "1k IOPS, p99<2ms", *given, "--headless"],
        standalone_mode=False,
        catch_exceptions=False,
    )
    (order,) = seen
    plan = order.first.plan
    assert isinstance(plan, SweepPlan)
    assert " x ".join(axis.text for axis in plan.axes) == axes
    assert order.whole is not None
    sized = order.whole([SweepResult(plan, (), "stopped", (), 0.0)], ())
    assert sized.need.text == "1k IOPS, p99<=2ms"
