"""What an entry of a knob says."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from engine.job.knobs.kinds import KnobKind
from engine.job.toml_values import quoted
from engine.replacing import replace

if TYPE_CHECKING:
    from engine.job.knobs.values import Knobs

_Value = TypeVar("_Value")
_METADATA = "knob"


class StepSize(StrEnum):
    """How far one press of a key turns a knob."""

    NORMAL = "normal"
    FINE = "fine"
    COARSE = "coarse"


class StepContext(Struct, frozen=True):
    """What a step depends on besides the knobs."""

    targets: int
    iops: float | None = None
    """IOPS of the running load, from which an unlimited rate steps down."""
    copies: int = 1
    """Targets that hold the same data: the width grows by whole columns."""
    size: StepSize = StepSize.NORMAL


Step = Callable[["Knobs", int, StepContext], "Knobs"]
"""Takes the direction, 1 or -1; at its end it returns the knobs as they are."""


class StepKey(Struct, frozen=True):
    """A key of the load screen that turns a knob by one step."""

    id: str
    """Id of the action, after `knob.`."""
    title: str
    """Title for help and palette."""
    keys: str
    """Keys by Textual's names, separated by commas."""
    step: Step
    direction: int

    def turned(self, knobs: Knobs, context: StepContext) -> Knobs:
        """Knobs after this step."""
        return self.step(knobs, self.direction, context)


class Row(Struct, frozen=True):
    """A line of the load screen: the value, and the keys that turn it beside it."""

    position: int
    title: str
    short: str
    """Short title, for narrow columns."""
    up: StepKey
    down: StepKey
    more: tuple[StepKey, ...] = ()
    hint: str = ""
    """Hint for the further keys."""
    shown: Callable[[Knobs, int], str] | None = None
    """What is shown for the knobs and the number of targets; None: the value as it is written."""
    brief: Callable[[Knobs], str] | None = None
    """The same in few cells, such as three digits; None: what is shown is cut."""
    width: int = 11
    of_paths: bool = False
    """Whether it is shown only where there are paths or copies to choose among."""

    @property
    def keys(self) -> tuple[StepKey, ...]:
        """All keys, in the order of the help screen."""
        return (self.up, self.down, *self.more)


class FormLine(Struct, frozen=True):
    """A line of the form of the job."""

    after: str
    """The line above it, by its id."""
    hint: str


class FioNumber(Struct, frozen=True):
    """A whole number that fio means alike; 0 in fio is not set."""

    names: Mapping[str, Mapping[str, Any]]
    """Options in fio, each with what it says of other knobs, by their ids."""
    of_writes: bool = False
    """Whether it is without effect on a job that only reads."""


@dataclass(frozen=True, slots=True)
class Knob:
    """One knob; `knob` makes it part of a field of Knobs; the field name is its id."""

    key: str
    """Key in job files; with hyphens the option of the command line."""
    position: int
    """Position in job files, summaries and the help of the command line."""
    name: str
    """Name in events: "queue depth 8 -> 16"."""
    kind: KnobKind
    help: str
    """Help of the option."""
    metavar: str = ""
    unset: str | None = None
    """The word for None; None where the knob always has a value."""
    null_in_events: bool = False
    """Whether events hold null instead of that word."""
    row: Row | None = None
    """None where no key turns it."""
    form: FormLine | None = None
    phrase: Callable[[Knobs], str] | None = None
    """How summaries mention it; empty where it need not be mentioned."""
    fio: tuple[str, ...] | None = None
    """Options of fio it is made of; None: a job that sets it cannot be written for fio."""
    fio_number: FioNumber | None = None
    """Present where one option of fio is all of it."""
    id: str = ""
    default: object = None

    @property
    def option(self) -> str:
        """As typed on the command line, without the dashes."""
        return self.key.replace("_", "-")

    def of(self, knobs: Knobs) -> Any:  # noqa: ANN401 (each knob has a type of its own)
        """Its value."""
        return getattr(knobs, self.id)

    def turned(self, knobs: Knobs, value: Any) -> Knobs:  # noqa: ANN401 - as above
        """Knobs with another value of it."""
        return replace(knobs, **{self.id: value})

    def read(self, value: object) -> Any:  # noqa: ANN401 - as above
        """Read a value as TOML or an event holds it.

        Raises:
            WrongTypeError: it is of another type.
            UsageError: its text cannot be read.
        """
        return None if self.unset is not None and value in (None, self.unset) else self.kind.read(value)

    def line(self, value: object) -> str:
        """Write a value as a line of TOML that `read` reads back as the same."""
        return f"{self.key} = {quoted(self.unset or '') if value is None else self.kind.toml(value)}"

    def plain(self, knobs: Knobs) -> str | int | float | None:
        """Format its value for events."""
        value = self.of(knobs)
        return (None if self.null_in_events else self.unset) if value is None else self.kind.plain(value)

    def shown(self, knobs: Knobs, targets: int) -> str:
        """Write its value as the load screen shows it."""
        return str(self.plain(knobs)) if self.row is None or self.row.shown is None else self.row.shown(knobs, targets)

    def document(self, knobs: Knobs) -> object:
        """Convert its value for the JSON of a run."""
        value = self.of(knobs)
        return None if value is None else self.kind.document(value)

    def problems(self, knobs: Knobs) -> Iterator[str]:
        """Say what is wrong with its value, whatever the targets."""
        value = self.of(knobs)
        if value is not None or self.unset is None:
            yield from self.kind.problems(value, knobs)


def knob(default: _Value, entry: Knob) -> _Value:
    """Make a field of Knobs with its default and its entry."""
    return field(default=default, metadata={_METADATA: entry})


def entries(knobs: type[Knobs]) -> dict[str, Knob]:
    """Collect the entries of all fields by their ids."""
    return {each.name: replace(each.metadata[_METADATA], id=each.name, default=each.default) for each in fields(knobs)}
