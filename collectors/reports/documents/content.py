"""What a document consists of, without any markup: texts are plain and escaped by whoever writes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from typing import TypeAlias

from msgspec import Struct, field

MOST_ROWS = 200
"""Most rows of a table that may have any number of them."""


class Facts(Struct, frozen=True):
    """Names with their values."""

    rows: tuple[tuple[str, str], ...]


class Bullets(Struct, frozen=True):
    """A list of sentences."""

    lines: tuple[str, ...]
    below: tuple[tuple[str, ...], ...] = ()
    """What follows from each line or supports it, where there is anything of that kind."""

    @property
    def whole(self) -> Iterator[str]:
        """Yield each with all that stands below it in one line."""
        for at, line in enumerate(self.lines):
            yield " - ".join((line, *(self.below[at] if self.below else ())))


NONE = Bullets(("none",))
"""The list of what there may be, where there is nothing."""


class Paragraph(Struct, frozen=True):
    """A few sentences."""

    text: str
    important: bool = False
    """Whether it is the answer that a reader looks for."""


class DocumentTable(Struct, frozen=True):
    """A table; the first `texts` columns are texts, all others numbers."""

    title: str
    head: tuple[tuple[str, str], ...]
    """Title and unit of each column."""
    rows: tuple[tuple[str, ...], ...]
    texts: int = 1
    note: str = ""

    @classmethod
    def of_first(cls, title: str, head: Sequence[tuple[str, str]], rows: Sequence[tuple[str, ...]]) -> DocumentTable:
        """Show as many rows as anybody reads, and say how many more there are."""
        more = f"{len(rows) - MOST_ROWS:,} more rows are not shown." if len(rows) > MOST_ROWS else ""
        return cls(title, tuple(head), tuple(rows[:MOST_ROWS]), note=more)


class DrawnAxis(StrEnum):
    """How the horizontal axis of a chart is divided."""

    TIME = "time"
    """Seconds since the start of the recording, shown as time of day."""
    LOG = "log"


class Form(StrEnum):
    """How a series is drawn."""

    LINE = "line"
    STACKED = "stacked"
    """An area on top of the stacked areas before it."""
    POINTS = "points"
    """A line through its points, with their error bars."""
    OPEN_POINTS = "open points"
    """A broken line through hollow diamonds: points of an open loop beside those of a closed one."""


class DrawnCurve(Struct, frozen=True):
    """One series of a chart."""

    name: str
    x: tuple[float, ...]
    y: tuple[float, ...]
    """NaN is a gap."""
    form: Form = Form.LINE
    low: tuple[float, ...] = ()
    """Lower ends of error bars."""
    high: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()
    """Labels of points."""


class Mark(Struct, frozen=True):
    """A vertical line at a value, with a short label."""

    x: float
    label: str
    text: str = ""


class Band(Struct, frozen=True):
    """A range on the horizontal axis, such as a confidence interval."""

    low: float
    high: float
    text: str


class DrawnChart(Struct, frozen=True):
    """Series over one axis."""

    title: str
    unit: str
    curves: tuple[DrawnCurve, ...]
    axis: DrawnAxis = DrawnAxis.TIME
    axis_title: str = ""
    marks: tuple[Mark, ...] = ()
    bands: tuple[Band, ...] = ()
    start_ns: int = 0
    """Wall time of 0 on an axis of time."""
    most: float | None = None
    """Upper end of the vertical axis; None: by the values."""
    log_y: bool = False
    """Whether the vertical axis is logarithmic too; not with stacked areas."""


class Charts(Struct, frozen=True):
    """Charts beside each other."""

    charts: tuple[DrawnChart, ...]
    title: str = ""


Block: TypeAlias = Facts | Bullets | Paragraph | DocumentTable | Charts


class Section(Struct, frozen=True):
    """A heading with its contents."""

    title: str
    blocks: tuple[Block, ...]
    details: tuple[Block, ...] = ()
    """Figures that the others rest on: below these on a page, above them in a terminal, where the end is read first."""

    def __bool__(self) -> bool:
        return bool(self.blocks or self.details)

    @property
    def whole(self) -> tuple[Block, ...]:
        """All of them in the order of a page."""
        return (*self.blocks, *self.details)


class Document(Struct, frozen=True):
    """A whole report."""

    title: str
    lead: str
    """One line: what, where, when."""
    sections: tuple[Section, ...] = field(default=())

    def filled(self) -> Iterator[Section]:
        """Yield the sections that have contents."""
        return (section for section in self.sections if section)
