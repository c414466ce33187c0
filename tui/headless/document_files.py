"""The files that `report --html`, `--md` and their like write."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click
from msgspec import Struct

from collectors.model import Tier
from collectors.reports.formats.registry import Format, formats
from engine.errors import UsageError

_STDOUT = Path("-")


def format_options() -> str:
    """Name the options of all formats."""
    *others, last = (f"--{form.option}" for form in formats())
    return f"{', '.join(others)} or {last}"


class DocumentFiles(Struct, frozen=True):
    """What was asked for."""

    wanted: Mapping[Format, Path]
    """The file of each format; - is standard output."""
    overwrite: bool

    def check(self, source: Path | None, *, as_json: bool, count: int | None) -> None:
        """Refuse what makes no sense together.

        Raises:
            UsageError: there is nothing to report on or to write to, or options exclude each other.
        """
        options = ", ".join(f"--{form.option}" for form in self.wanted)
        if not self.wanted:
            raise UsageError(f"--overwrite: it is about the file of {format_options()}: give one of these")
        if source is None:
            raise UsageError(f"{options}: give --from with a recording, or the file of a run or a sweep")
        if as_json or count is not None:
            raise UsageError(f"{'--json' if as_json else 'COUNT'}: not with {options}: leave it out")
        if len(set(self.wanted.values())) < len(self.wanted):
            raise UsageError(f"{options}: one name for both: give two")

    def write(
        self,
        source: Path,
        *,
        tables: tuple[str, ...],
        split: bool,
        all_rows: bool,
        interval_s: float | None,
        best: Tier,
    ) -> None:
        """Read the source once and write all files.

        Raises:
            LunscopeError: it cannot be read, or a file cannot be written.
        """
        # Only this needs the comparison of recordings and the curves of sweeps.

        from collectors.reports.documents.averages import DocumentOptions  # noqa: PLC0415
        from collectors.reports.documents.files import (  # noqa: PLC0415
            document_of,
            require_writable,
            write_report,
        )

        for path in self.wanted.values():
            if path != _STDOUT:
                require_writable(path, overwrite=self.overwrite)
        document = document_of(source, DocumentOptions(tables, split, all_rows, interval_s, best))
        for form, path in self.wanted.items():
            if path != _STDOUT:
                write_report(path, form.lines(document), overwrite=self.overwrite)
                continue
            for line in form.lines(document):
                click.echo(line)
