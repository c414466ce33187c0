"""Values of our own JSON by their types: decoded by msgspec, refused where one is of another type or out of range."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from msgspec import Meta, ValidationError, convert, to_builtins

Value = TypeVar("Value")

_LARGEST = 1e30
"""More than any figure of a trial."""

Figure = Annotated[float, Meta(ge=0, lt=_LARGEST)]
Positive = Annotated[float, Meta(gt=0, lt=_LARGEST)]
Count = Annotated[int, Meta(ge=0, lt=1 << 62)]


def decoded(kind: type[Value], document: Any) -> Value | None:  # noqa: ANN401 (of a file)
    """Read a value of a type from what `load_json` gave; None where it is none."""
    try:
        return convert(document, kind)
    except (ValidationError, RecursionError):
        return None


def encoded(value: object) -> Any:  # noqa: ANN401 (of its type)
    """Write a value as `json.dumps` takes it; numbers of numpy become plain ones."""
    return to_builtins(value, enc_hook=lambda number: number.item())
