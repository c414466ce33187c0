"""What a verb prints of a result."""

from __future__ import annotations

from collections.abc import Iterable

from collectors.advice.measured import Answer, answer_sections
from collectors.reports.documents.content import Section
from collectors.reports.formats.text import WIDTH, section_lines


def printed(*answers: Answer) -> str:
    """Return what is printed of what was measured point by point, in lines that a terminal does not break."""
    return shown(answer_sections(answers))


def shown(sections: Iterable[Section]) -> str:
    """Return sections as they are printed."""
    lines = list(section_lines(sections))
    assert max(map(len, lines), default=0) <= WIDTH
    return "\n".join(lines)


def unwrapped(text: str) -> str:
    """Undo line breaks, to look for a sentence."""
    return " ".join(text.split())
