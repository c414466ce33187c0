"""The line that starts an isolation curve on the screen."""

from __future__ import annotations

from engine.errors import UsageError
from engine.isolation.plan import IsolationPlan, plan_isolation
from engine.job.choices import Arrival
from engine.job.spec import JobSpec
from engine.replacing import replace
from engine.text import safe_text, short_text
from tui.screens.sweep.preset_group import measurable

EXAMPLE = "rate=500 qd=1,4,16"
NEEDS = "1 target, root, control groups that limit I/O"
HELP = (
    "How far this load is disturbed by another one on the same device, and which cap on the other helps. "
    "The rate of this load, the queue depths of the other, and its caps, such as\n\n"
    f"    {EXAMPLE} cap=riops=2000 cap=rbps=20m\n\n"
    "cap: without any, a half and a tenth of what the other reaches; bs=4k,64k its block sizes; "
    "within=TIMES [1.5] the response time alone; runtime=SECONDS [10] of each point."
)


def asked_isolation(text: str, job: JobSpec) -> IsolationPlan:
    """Plan a curve of a line of settings, for the job of a load.

    Raises:
        UsageError: it is no such line, or the curve cannot be measured on the targets of the job.
    """
    rate: float | None = None
    figures: dict[str, float] = {}
    vary, caps = list[str](), list[str]()
    for word in text.split():
        key, _, value = word.partition("=")
        match key:
            case "qd" | "bs":
                vary.append(word)
            case "cap":
                caps.append(value)
            case "rate":
                rate = _number(word, value)
            case "within" | "runtime":
                figures[key] = _number(word, value)
            case _:
                raise UsageError(f"'{safe_text(short_text(word, 40))}': write {EXAMPLE} cap=riops=2000")
    job = replace(measurable(job), arrival=Arrival.CLOSED)
    return plan_isolation(
        replace(job, knobs=replace(job.knobs, rate_iops=rate)),
        vary=vary,
        caps=caps,
        seconds=figures.get("runtime"),
        within=figures.get("within"),
    )


def _number(word: str, value: str) -> float:
    try:
        number = float(value.removesuffix("s"))
    except ValueError:
        number = 0.0
    if not 0 < number < 1e9:
        raise UsageError(f"'{safe_text(short_text(word, 40))}': a number above 0, such as rate=500")
    return number
