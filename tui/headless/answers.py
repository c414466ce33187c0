"""What studies say, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import click

from collectors.advice.finding import Finding, finding_lines, findings_document
from collectors.advice.of_rates import findings_of_rates
from collectors.advice.of_sweep import findings_of_sweep
from collectors.advice.point_text import point_lines
from collectors.advice.point_watch import DeviceWatch
from engine.isolation.study import IsolationStudy, study_document, study_lines
from engine.rate_search.document import open_loop, rate_document
from engine.rate_search.runner import RateResult
from engine.rate_search.text import rate_lines
from engine.running.control import LoadControl
from engine.strict_json import dump_json
from engine.sweep.document import Document, sweep_document
from engine.sweep.presets.outcome import PresetOutcome, outcome_document, outcome_lines
from engine.sweep.runner import SweepResult
from engine.sweep.text import sweep_lines
from engine.text import safe_text

Answer: TypeAlias = SweepResult | RateResult | IsolationStudy | PresetOutcome | None
"""None stands for a study that did not begin."""


def print_answers(answers: Sequence[Answer], control: LoadControl, watch: DeviceWatch, *, as_json: bool) -> None:
    """Print what was measured over a load; nothing where nothing was."""
    if not as_json:
        for line in answer_lines(answers):
            click.echo(safe_text(line))
        return
    document = answer_document(answers, control.status.targets, watch.host())
    if document is not None:
        click.echo(dump_json(document))


def answer_lines(answers: Sequence[Answer]) -> Iterator[str]:
    """Write tables and answers, then what the devices did, then what follows from both."""
    for each in answers:
        match each:
            case SweepResult():
                yield from sweep_lines(each)
            case RateResult():
                yield from rate_lines(each)
            case IsolationStudy(points=[_, *_]):
                yield from study_lines(each)
            case PresetOutcome():
                yield from outcome_lines(each)
    yield from (line for each in answers if isinstance(each, SweepResult) for line in point_lines(each))
    yield from finding_lines(_findings(answers))


def answer_document(
    answers: Sequence[Answer], targets: tuple[str, ...], host: Mapping[str, Any] | None
) -> Document | None:
    """Write everything that was measured as JSON; None where nothing was."""
    found: Document = {"host": host}
    match answers:
        case [PresetOutcome() as outcome]:
            return {**outcome_document(outcome), **found}
        case [IsolationStudy(points=[_, *_]) as study]:
            return {**study_document(study), **found}
        case [SweepResult() as closed, *rest]:
            document = sweep_document(closed, targets)
            for each in rest:
                document["open_loop"] = open_loop(each) if isinstance(each, RateResult) else None
        case [RateResult() as rates]:
            document = rate_document(rates, targets)
        case _:
            return None
    return {**document, **found, "findings": findings_document(_findings(answers))}


def _findings(answers: Sequence[Answer]) -> tuple[Finding, ...]:
    closed = (found for each in answers if isinstance(each, SweepResult) for found in findings_of_sweep(each))
    rates = (found for each in answers if isinstance(each, RateResult) for found in findings_of_rates(each))
    return (*closed, *rates)
