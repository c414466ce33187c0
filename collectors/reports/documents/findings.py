"""What limited a load, from the key `findings` of its document."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.reports.documents.content import Bullets, Section
from collectors.reports.documents.json_values import Values, figure, number, parts, text_of

_MOST = 50


def finding_section(document: Values) -> Section:
    """List the findings with their evidence; empty where the document has none."""
    found = parts(document, "findings")[:_MOST]
    blocks = (Bullets(tuple(map(_line, found)), tuple(tuple(_below(each)) for each in found)),) if found else ()
    return Section("What limited it, and what to change", blocks)


def _line(found: Values) -> str:
    where = "" if found.get("where") is None else f" [{text_of(found['where'])}]"
    sure = "" if found.get("confidence") is None else f" ({text_of(found['confidence'])})"
    return f"{text_of(found.get('section'))}: {text_of(found.get('text'))}{sure}{where}"


def _below(found: Values) -> Iterator[str]:
    if evidence := "; ".join(map(_evidence, parts(found, "evidence"))):
        yield evidence
    if isinstance(found.get("command"), str):
        yield f"to change it: {text_of(found['command'])}"


def _evidence(each: Values) -> str:
    value = number(each, "value")
    shown = f"{value:.3g}" if 0 < abs(value) < 1 else figure(value, 0 if abs(value) >= 100 or value % 1 == 0 else 2)
    unit = each.get("unit")
    sampled = " (sampled)" if each.get("source") == "sampled" else ""
    return f"{text_of(each.get('name'))} {shown}" + (f" {unit}" if isinstance(unit, str) and unit else "") + sampled
