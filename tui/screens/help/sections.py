"""The sections of help: generated from the registries of actions, screens and fields.

Figures of esxtop and iostat: VMware KB 309140 and the esxtop documentation; iostat(1) of sysstat 12;
docs/other-monitors.md has the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from textual.content import Content

from collectors.all_subjects import SUBJECTS
from collectors.exact.losses import loss_lines
from collectors.field import Field
from collectors.model import Tier
from collectors.registry import subject_of
from collectors.subject import Subject
from engine.text import safe_text
from tui.action import Action
from tui.keys import ANYWHERE_ACTIONS
from tui.screen_registry import SCREENS, ScreenEntry

KEYS_WIDTH = 18
TITLE_WIDTH = 12
THEIRS_WIDTH = 20


class Hanging(Struct, frozen=True):
    """One line; wrapped text continues `indent` cells from the left."""

    content: Content
    indent: int = 0


class HelpSection(Struct, frozen=True):
    """A heading with its lines."""

    title: str
    lines: tuple[Hanging, ...]


class HelpFacts(Struct, frozen=True):
    """What help says besides the registries."""

    screen: ScreenEntry | None
    """The current screen, which comes first."""
    keys_text: Callable[[Action], str]
    """Keys in force, as people write them."""
    table_keys: Sequence[tuple[str, str]]
    """Keys of tables, and what they do."""
    notices: Sequence[str] = ()
    losses: Mapping[str, int] = field(default_factory=dict)


TIER_TEXTS = (
    (Tier.EXACT, "measured for every I/O, by the kernel's tracepoints or the engine's own clock"),
    (Tier.SAMPLED, "estimated from many samples of the I/Os in flight; accurate to a few percent when busy"),
    (Tier.KERNEL, "from the kernel's counters alone: means over the interval, %busy over-reports on parallel devices"),
    (Tier.AT_LEAST, "exact for what was seen, but I/Os were lost: the true value is as large or larger"),
)

_TOP_LINE = (
    ("cost", "CPU time of sampling, in % of one CPU; without drawing and the load"),
    ("kernel", "the same of exact time in the kernel, and per I/O; ~ where the kernel does not measure it"),
    ("late", "delay of the last sample"),
)
_PALETTE = ("^p", "Commands: everything that works here, by groups")
_SEE_ALSO = "also: docs/other-monitors.md"


def help_sections(facts: HelpFacts) -> tuple[HelpSection, ...]:
    """All sections, those of the current screen first."""
    here = facts.screen
    shown = () if here is None else here.tables
    return tuple(
        section
        for section in (
            *_of_screen(here, facts),
            _section("Notices on this host", (entry("  ! ", "bold $warning", safe_text(n)) for n in facts.notices)),
            *(_fields_of(subject_of(table)) for table in shown),
            _section("Keys everywhere", (key_line(*_PALETTE), *_actions(ANYWHERE_ACTIONS, facts))),
            *(_keys_of(screen, facts) for screen in SCREENS if screen is not here),
            _section("Tiers: how a figure was obtained", _words((t.name.lower(), text) for t, text in TIER_TEXTS)),
            _section("The line at the top", _words(_TOP_LINE)),
            _section("I/Os missed by exact time since it began", _losses(facts.losses)),
            _section("Coming from esxtop", (*_counterparts(ESXTOP), entry("  ", "", ESXTOP_RULE), _also())),
            _section("Coming from iostat and sar", (*_counterparts(IOSTAT), _also())),
            *(_fields_of(subject) for subject in SUBJECTS if subject.table not in shown),
        )
        if section.lines
    )


def _of_screen(screen: ScreenEntry | None, facts: HelpFacts) -> Iterator[HelpSection]:
    if screen is None:
        return
    about = Hanging(Content(f"  {screen.help}"), 2)
    yield _section(f"This screen: {screen.title}", (about, *_actions(screen.keyed, facts)))
    yield _section("Keys of tables", (key_line(keys, text) for keys, text in facts.table_keys))


def _keys_of(screen: ScreenEntry, facts: HelpFacts) -> HelpSection:
    """List the keys of another screen, without those that work on this one as well: they are there already."""
    here = () if facts.screen is None else facts.screen.borrowed
    return _section(f"Keys of {screen.id}", _actions((each for each in screen.actions if each not in here), facts))


def _section(title: str, lines: Iterable[Hanging]) -> HelpSection:
    return HelpSection(title, tuple(lines))


def _actions(actions: Iterable[Action], facts: HelpFacts) -> Iterator[Hanging]:
    for action in actions:
        yield key_line(facts.keys_text(action), action.title + _limits(action))


def _limits(action: Action) -> str:
    if action.replay:
        return "  (recordings only)"
    return "  (live only)" if action.replay is False and not action.needs_load else ""


def _words(pairs: Iterable[tuple[str, str]]) -> Iterator[Hanging]:
    return (entry(f"  {word:<{KEYS_WIDTH}}", "bold", text) for word, text in pairs)


def _losses(losses: Mapping[str, int]) -> Iterator[Hanging]:
    return (Hanging(Content(line)) for line in loss_lines(losses)) if losses else iter(())


def _counterparts(lines: Iterable[Counterpart]) -> Iterator[Hanging]:
    for line in lines:
        yield entry(f"  {line.theirs:<{THEIRS_WIDTH}}", "bold", (line.ours, "bold $accent"), "  ", line.text)


def _also() -> Hanging:
    return entry("  ", "", (_SEE_ALSO, "dim"))


def _fields_of(subject: Subject) -> HelpSection:
    title = f"{subject.one[0].upper()}{subject.one[1:]} figures"
    return _section(title, (line for each in subject.fields for line in field_lines(each)))


def field_lines(each: Field) -> Iterator[Hanging]:
    """Title, unit, meaning and tier, then the id of filters and exports with the source."""
    unit = f"[{each.unit}] " if each.unit else ""
    tier = f" ({each.tier.name.lower()})" if each.tier is not Tier.KERNEL else ""
    yield entry(f"  {each.title:<{TITLE_WIDTH}}", "bold", (unit, "$accent"), each.help, (tier, "dim"))
    source = f"; {each.source}" if each.source else ""
    yield entry(" " * (TITLE_WIDTH + 2), "", (f"{each.id}{source}", "dim"))


def key_line(keys: str, text: str) -> Hanging:
    """Keys, and what they do."""
    return entry(f"  {keys:<{KEYS_WIDTH}}", "bold $accent", text)


def entry(head: str, style: str, *text: str | tuple[str, str]) -> Hanging:
    """Return a line with a head in a column of its own, and text beside it."""
    return Hanging(Content.assemble((head, style), *text), len(head))


def heading(title: str) -> tuple[Hanging, Hanging]:
    """Return a blank line and the title of a section."""
    return Hanging(Content("")), Hanging(Content.assemble((title, "bold underline")))


class Counterpart(Struct, frozen=True):
    """A figure of another monitor."""

    theirs: str
    ours: str
    """Titles of the figures that correspond."""
    text: str


ESXTOP: tuple[Counterpart, ...] = (
    Counterpart(
        "DAVG",
        "S",
        "From the HBA driver to completion: HBA, fabric, array. Both are means; S has p99 and maximum, too.",
    ),
    Counterpart(
        "KAVG",
        "Q (+ Tag)",
        "Time in the kernel above the driver. KAVG includes QAVG and processing; Q is the wait of a request for the "
        "driver, Tag the wait for a free request before it.",
    ),
    Counterpart(
        "QAVG",
        "Q, Tag",
        "Wait because a queue is full. Linux: in Q where the queue_depth of the path is reached, in Tag where "
        "nr_requests or can_queue is.",
    ),
    Counterpart(
        "GAVG",
        "await",
        "DAVG + KAVG, as await is Q + S. In a virtual machine its own S contains the host's whole GAVG.",
    ),
    Counterpart(
        "ACTV", "aqu-sz", "Commands in the driver at one moment; aqu-sz is a mean over the interval and includes Q."
    ),
    Counterpart("QUED", "aqu-sz x Q / await", "Commands that wait for the driver; Little's law gives them as a mean."),
    Counterpart("DQLEN, AQLEN", "Limit", "Commands that a path (queue_depth) and a port (can_queue) admit."),
    Counterpart("%USD, LOAD", "%limit", "ACTV / DQLEN, and with QUED; %limit is aqu-sz / Limit, so nearer to LOAD."),
    Counterpart("CMDS/s", "IOPS", "esxtop counts all commands; IOPS are reads and writes, d/s and f/s the others."),
    Counterpart("ABRTS/s", "+tmo", "Commands that timed out; esxtop counts the aborts that follow."),
)

ESXTOP_RULE = (
    "DAVG above 20 to 25 ms points to the array or the fabric, KAVG above 1 to 2 ms to the host. Here S is coloured "
    "from 20 ms, Q from 2 ms. esxtop has means only: 19 I/Os of 1 ms and one of 500 ms show as 25.95 ms; p99 and Peak "
    "tell them apart."
)

IOSTAT: tuple[Counterpart, ...] = (
    Counterpart(
        "r_await, w_await",
        "r await, w await",
        "The same: accounted start to completion, Q + S. Without I/O iostat prints 0.00 and lunscope -.",
    ),
    Counterpart(
        "aqu-sz",
        "aqu-sz",
        "The same mean. iostat adds up time of all requests, lunscope that of reads and writes, and of held I/Os.",
    ),
    Counterpart(
        "%util",
        "Busy",
        "Share of time with any I/O outstanding. iostat has the kernel's ticks, wrong at light loads and before 6.10; "
        "exact Busy is timed. 100 % is no limit of a device that works in parallel.",
    ),
    Counterpart(
        "svctm",
        "S",
        "Was %util / IOPS, wrong wherever I/Os overlap; gone since sysstat 12.1.2, in atop as avio. S is measured.",
    ),
    Counterpart("rkB/s, wkB/s", "rB/s, wB/s", "The same in bytes; suffixes are powers of 1024."),
    Counterpart("rareq-sz, wareq-sz", "r size, w size", "The same in bytes; iostat prints KiB."),
    Counterpart("rrqm/s, wrqm/s", "rrqm/s, wrqm/s", "The same."),
    Counterpart("avwait, avserv", "Q, S", "Of sar on HP-UX and Solaris; no Linux tool besides has the split."),
)
