"""What the guard says of the targets of the job, before anything is started."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from textual.content import Content

from collectors.kernel.hotplug_changes import size_text
from engine.guard.answers import GuardAnswer
from engine.job.spec import TargetSpec
from engine.job.target_text import format_target
from engine.text import safe_text
from tui.widgets.line import TextLine

MOST_LINES, FEW_LINES = 6, 3
OWN = "made, filled and removed by lunscope"
ALLOWED = "asks for its name"


class GuardPanel(TextLine):
    """Name, size, and the answers for reading and for writing of each target; it is as high as its text."""

    DEFAULT_CSS = """
    GuardPanel { height: auto; max-height: 6; text-wrap: wrap; text-overflow: fold; padding: 0 1; }
    """

    def show(self, targets: Sequence[TargetSpec], answers: Sequence[GuardAnswer] | None, most_lines: int) -> None:
        """Show the answers; None while the guard is at work."""
        if answers is None:
            first = safe_text(format_target(targets[0]))
            more = f" and {len(targets) - 1} more" if len(targets) > 1 else ""
            lines = [Content.assemble((first, "bold"), f"{more}  checking who uses it ...")]
        else:
            lines = list(answer_lines(answers, most_lines))
        width = max(1, self.size.width - 2) if self.size.width else 78
        height = sum(-(-max(1, line.cell_length) // width) for line in lines)
        height = min(height, most_lines)
        if self.styles.height is None or self.styles.height.value != height:
            self.styles.height = height
        self.put(Content("\n").join(lines))


def answer_lines(answers: Sequence[GuardAnswer], most_lines: int = MOST_LINES) -> Iterator[Content]:
    """Write the answers, equal ones together: one line, and another for what is refused."""
    if all(answer.is_own for answer in answers):
        names = "scratch file" if len(answers) == 1 else f"{len(answers)} scratch files or new files"
        yield Content.assemble((names, "bold"), f"  {OWN}")
        return
    shown = answers if len(answers) <= most_lines else answers[: most_lines - 1]
    for answer in shown:
        yield _line(answer)
    rest = answers[len(shown) :]
    if rest:
        refused = sum(bool(answer.reading) for answer in rest), sum(bool(answer.writing) for answer in rest)
        yield Content(f"and {len(rest)} more: {refused[0]} cannot be read, {refused[1]} may not be written")


def _line(answer: GuardAnswer) -> Content:
    head: list[str | tuple[str, str]] = [
        (answer.name, "bold"),
        "" if answer.size_bytes is None else f"  {size_text(answer.size_bytes)}",
    ]
    if answer.is_own:
        return Content.assemble(*head, f"  {OWN}")
    if answer.reading:
        return Content.assemble(*head, "  read: ", (without_name(answer.reading, answer.name), "bold $error"))
    writing = (without_name(answer.writing, answer.name), "$warning") if answer.writing else (ALLOWED, "")
    return Content.assemble(*head, "  read: ", ("allowed", "$success"), "  write: ", writing)


def without_name(text: str, name: str) -> str:
    """Leave out the name with which a sentence of the guard begins."""
    return text[len(name) :].lstrip(" :") if text.startswith((f"{name}:", f"{name} ")) else text
