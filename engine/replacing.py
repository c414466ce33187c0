"""Changed copies of frozen values, be their class a msgspec struct or a dataclass."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from msgspec import Struct, structs

__all__ = ["replace"]

if TYPE_CHECKING:
    # Type checkers compare the fields given here with those of the class, for structs too.
    from dataclasses import replace
else:

    def replace(value, /, **changes):  # noqa: ANN001, ANN003, ANN201 # annotated where type checkers look
        """Return a copy of a frozen value with other fields.

        Raises:
            TypeError: the class has no such field.
        """
        if isinstance(value, Struct):
            return structs.replace(value, **changes)
        return dataclasses.replace(value, **changes)
