"""What a verb prints of a result."""

from __future__ import annotations

from collections.abc import Iterable

from collectors.advice.measured import Answer, answer_sections
from collectors.reports.documents.content import Section
from collectors.reports.documents.run_result import result_sections
from collectors.reports.formats.text import WIDTH, section_lines
from engine.results.result import RunResult
from engine.results.result_document import run_document


def printed(*answers: Answer) -> str:
    """Return what is printed of what was measured point by point, in lines that a terminal does not break."""
    return shown(answer_sections(answers))


def run_text(result: RunResult, **known: object) -> str:
    """Return what is printed of a load, with further keys of its document."""
    return shown(result_sections(result, {**run_document(result), **known}, "Run"))


def shown(sections: Iterable[Section]) -> str:
    """Return sections as they are printed."""
    lines = list(section_lines(sections))
    wide = [line for line in lines if len(line) > WIDTH]
    assert not wide, wide
    return "\n".join(lines)


def unwrapped(text: str) -> str:
    """Undo line breaks, to look for a sentence."""
    return " ".join(text.split())
