"""What studies that were just measured say, as the sections of their document."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from collectors.advice.finding import Finding, findings_document
from collectors.advice.of_rates import findings_of_rates
from collectors.advice.of_sweep import findings_of_sweep
from collectors.reports.documents.content import Section
from collectors.reports.documents.findings import finding_section
from collectors.reports.documents.study import study_sections
from collectors.reports.documents.sweep import sweep_sections
from collectors.reports.documents.sweep_file import swept_of, swept_of_need, swept_of_rates
from engine.isolation.study import IsolationStudy, study_document
from engine.rate_search.runner import RateResult
from engine.sizing.outcome import SizedSweep
from engine.sweep.presets.outcome import PresetOutcome, outcome_document
from engine.sweep.runner import SweepResult

Answer: TypeAlias = SweepResult | SizedSweep | RateResult | IsolationStudy | PresetOutcome | None
"""None stands for a study that did not begin."""


def answer_sections(answers: Sequence[Answer]) -> list[Section]:
    """Describe results that belong together, and at the end what limited them."""
    sections = [section for answer in answers for section in _sections(answer)]
    return [*sections, finding_section({"findings": findings_document(answer_findings(answers))})]


def _sections(answer: Answer) -> Sequence[Section]:
    match answer:
        case SweepResult():
            return sweep_sections(swept_of(answer))
        case SizedSweep():
            return sweep_sections(swept_of_need(answer))
        case RateResult():
            return sweep_sections(swept_of_rates(answer))
        case IsolationStudy(points=[_, *_]):
            return study_sections(study_document(answer))
        case PresetOutcome():
            return study_sections(outcome_document(answer))
        case _:
            return ()


def answer_findings(answers: Sequence[Answer]) -> tuple[Finding, ...]:
    """Find what limited them."""
    sweeps = (each.result if isinstance(each, SizedSweep) else each for each in answers)
    closed = (found for each in sweeps if isinstance(each, SweepResult) for found in findings_of_sweep(each))
    rates = (found for each in answers if isinstance(each, RateResult) for found in findings_of_rates(each))
    return (*closed, *rates)
