"""What studies say, as text and as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from collectors.advice.finding import findings_document
from collectors.advice.measured import Answer, answer_findings, answer_sections
from collectors.advice.point_watch import DeviceWatch
from engine.isolation.study import IsolationStudy, study_document
from engine.rate_search.document import open_loop, rate_document
from engine.rate_search.runner import RateResult
from engine.running.control import LoadControl
from engine.strict_json import dump_json
from engine.sweep.document import Document, sweep_document
from engine.sweep.presets.outcome import PresetOutcome, outcome_document
from engine.sweep.runner import SweepResult
from tui.headless.shown import print_sections


def print_answers(answers: Sequence[Answer], control: LoadControl, watch: DeviceWatch, *, as_json: bool) -> None:
    """Print what was measured over a load; nothing where nothing was."""
    if not as_json:
        print_sections(answer_sections(answers))
        return
    document = answer_document(answers, control.status.targets, watch.host())
    if document is not None:
        click.echo(dump_json(document))


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
    return {**document, **found, "findings": findings_document(answer_findings(answers))}
