"""What limited a load, from the key `findings` of its document."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.reports.documents.content import Block, Bullets
from collectors.reports.documents.json_values import Values, figure, number, parts, text_of

_MOST = 50


def finding_blocks(document: Values) -> Iterator[Block]:
    """Yield a line for each finding with its evidence; nothing where the document has none."""
    lines = tuple(_line(found) for found in parts(document, "findings")[:_MOST])
    if lines:
        yield Bullets(lines)


def _line(found: Values) -> str:
    where = "" if found.get("where") is None else f" [{text_of(found['where'])}]"
    sure = "" if found.get("confidence") is None else f" ({text_of(found['confidence'])})"
    evidence = "; ".join(map(_evidence, parts(found, "evidence")))
    change = f" - to change it: {text_of(found['command'])}" if isinstance(found.get("command"), str) else ""
    return (
        f"{text_of(found.get('section'))}: {text_of(found.get('text'))}{sure}{where}"
        + (f" - {evidence}" if evidence else "")
        + change
    )


def _evidence(each: Values) -> str:
    value = number(each, "value")
    shown = figure(value, 0 if abs(value) >= 100 or value % 1 == 0 else 2)
    unit = each.get("unit")
    return f"{text_of(each.get('name'))} {shown}" + (f" {unit}" if isinstance(unit, str) and unit else "")
