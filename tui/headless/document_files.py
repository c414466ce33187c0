"""The files that `report --html` and `--md` write."""

from __future__ import annotations

from pathlib import Path

import click
from msgspec import Struct

from collectors.model import Tier
from engine.errors import UsageError

_STDOUT = Path("-")


class DocumentFiles(Struct, frozen=True):
    """What was asked for."""

    html: Path | None
    md: Path | None
    overwrite: bool

    def check(self, source: Path | None, *, as_json: bool, count: int | None) -> None:
        """Refuse what makes no sense together.

        Raises:
            UsageError: there is nothing to report on or to write to, or options exclude each other.
        """
        names = [name for name in (self.html, self.md) if name is not None]
        if not names:
            raise UsageError("--overwrite: it is about the file of --html or --md: give one of these")
        if source is None:
            raise UsageError("--html, --md: give --from with a recording, or the file of a run or a sweep")
        if as_json or count is not None:
            raise UsageError(f"{'--json' if as_json else 'COUNT'}: not with --html or --md: leave it out")
        if len(names) == 2 and self.html == self.md:
            raise UsageError("--html, --md: one name for both: give two")

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
        from collectors.reports.documents.html import html_lines  # noqa: PLC0415
        from collectors.reports.documents.markdown import markdown_lines  # noqa: PLC0415
        from collectors.reports.documents.open_file import document_of  # noqa: PLC0415
        from collectors.reports.documents.output import require_writable, write_report  # noqa: PLC0415

        wanted = [(path, lines) for path, lines in ((self.html, html_lines), (self.md, markdown_lines)) if path]
        for path, _ in wanted:
            if path != _STDOUT:
                require_writable(path, overwrite=self.overwrite)
        document = document_of(source, DocumentOptions(tables, split, all_rows, interval_s, best))
        for path, lines in wanted:
            if path != _STDOUT:
                write_report(path, lines(document), overwrite=self.overwrite)
                continue
            for line in lines(document):
                click.echo(line)
