"""What verbs print of a load that just ended, and of several at once, in the words and tables of its document."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from collectors.reports.documents.content import Facts, Section
from collectors.reports.documents.findings import finding_section
from collectors.reports.documents.json_values import Values, parts
from collectors.reports.documents.run import below_sections, loads_section, ran_words, result_section, shown_sections
from engine.job.describe import describe_job
from engine.replacing import replace
from engine.results.group_result import GroupResult
from engine.results.measured import Measured, combine
from engine.results.result import RunResult
from engine.results.result_document import measured_document

_MOST = 16
"""Targets that are named, and that have a row each."""


def result_sections(result: RunResult, document: Values, title: str) -> list[Section]:
    """Describe a load; `document` is its JSON, as far as there is any."""
    about = result.about
    words = (
        ("load", f"{describe_job(about.job)}; {about.engine.backend} engine ({about.engine.why})"),
        ("on", _listed(about.targets)),
        ("ran", ran_words(document)),
    )
    return shown_sections(document, title, words, list(_over_epochs(result)))


def group_sections(group: GroupResult, document: Values) -> list[Section]:
    """Describe each load of a group, then all together: percentiles of the sum are of all I/Os."""
    words = (
        ("loads", f"{len(group.loads)} at the same time"),
        ("on", _listed(group.targets)),
        ("ran", ran_words(document)),
    )
    each = (
        replace(section, title=f"{load.name}: {section.title}" if section.title else load.name)
        for load, own in zip(group.loads, parts(document, "loads"), strict=True)
        for section in result_sections(load.result, own, "")
    )
    result = replace(result_section(document), title="All loads: Result")
    together = (Section("All loads", (Facts(words),)), result, loads_section(document))
    return [*each, *together, *below_sections(document), finding_section(document)]


def _listed(names: tuple[str, ...]) -> str:
    """Name targets, the first of them if there are many."""
    shown = ", ".join(names[:_MOST])
    return shown if len(names) <= _MOST else f"{shown} and {len(names) - _MOST} more"


def _over_epochs(result: RunResult) -> Iterator[Values]:
    """Sum up the I/Os of each of several targets, and of each path; documents have them by epoch only."""
    names = result.about.targets if len(result.about.targets) > 1 else ()
    for name in names[:_MOST]:
        seen = [(epoch, target) for epoch in result.epochs for target in epoch.targets if target.name == name]
        if seen:
            parts_of_it = [target.split.total for _, target in seen]
            yield _summed(name, parts_of_it, sum(epoch.duration_s for epoch, _ in seen))
    found: dict[str, list[tuple[Measured, float]]] = {}
    for epoch in result.epochs:
        for path in (path for target in epoch.targets for path in target.paths):
            found.setdefault(path.name, []).append((path.split.total, epoch.duration_s))
    for name, of_path in found.items():
        errors = sum(part.errors for part, _ in of_path)
        failed = f": {errors:,} failed, tried on another path" if errors else ""
        yield _summed(f"path {name}{failed}", [part for part, _ in of_path], sum(seconds for _, seconds in of_path))


def _summed(name: str, measured: list[Measured], duration_s: float) -> Mapping[str, object]:
    return {"name": name, "total": measured_document(combine(measured), duration_s)}
