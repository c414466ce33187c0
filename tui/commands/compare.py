"""`lunscope compare`: two recordings, or parts of them, figure by figure, with a verdict."""

from __future__ import annotations

import click

from collectors.compare.comparison import CompareOptions, Comparison, compare, wanted_fields
from collectors.compare.document import comparison_document
from collectors.compare.open_side import TABLES, holdings, open_side, require_apart
from collectors.compare.part import PartText
from collectors.compare.run_side import is_document
from collectors.compare.side import Side, matched
from collectors.field import UNIT_FLOORS, Unit
from collectors.reports.documents.comparison import comparison_sections
from collectors.reports.export import TABLES as KNOWN_TABLES
from collectors.sources.replay import ReplaySource
from engine.errors import UsageError
from engine.replacing import replace
from engine.statistics.verdict import Verdict
from engine.strict_json import dump_json
from engine.text import decimal_number, safe_text, short_text
from tui.compare_asked import CompareAsked
from tui.headless.leaving import go_on_in_child
from tui.headless.shown import print_sections
from tui.process.standard_streams import require_terminal, say

_UNITS = {unit.value or "count": unit for unit in UNIT_FLOORS}
_FAILING = (Verdict.WORSE, Verdict.DIFFERS, Verdict.UNDECIDED)


@click.command(short_help="two recordings, or parts of them: better, worse or equivalent")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@click.option(
    "--delta", default="5%", show_default=True, metavar="PERCENT", help="Largest difference that does not matter."
)
@click.option(
    "--floor",
    "floors",
    multiple=True,
    metavar="UNIT=VALUE",
    help="Difference that never matters, in ms, 1/s, B/s, %, B or count; 0 is none of any unit; repeat for more. "
    f"[{', '.join(f'{name}={UNIT_FLOORS[unit]:g}' for name, unit in _UNITS.items())}]",
)
@click.option(
    "--confidence", default="95%", show_default=True, metavar="PERCENT", help="Of each interval; 50% to 99.99%."
)
@click.option(
    "--table",
    "tables",
    multiple=True,
    metavar="NAME",
    help=f"Of {', '.join(KNOWN_TABLES)}; repeat for more. [{', '.join(TABLES)}]",
)
@click.option("--fields", metavar="ID,...", help="Field ids; default: those of reports.")
@click.option("--all", "every", is_flag=True, help="All fields, and rows without I/O.")
@click.option(
    "--fail-on",
    multiple=True,
    type=click.Choice([verdict.value for verdict in _FAILING]),
    help="Exit 1 if any figure has this verdict; repeat for more.",
)
@click.option("--screen", is_flag=True, help="On the Compare screen: with distributions and series of both.")
@click.option("--theme", metavar="NAME", help="Colours of the screen.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document (lunscope.compare/1).")
def command(
    *,
    a: str,
    b: str,
    delta: str,
    floors: tuple[str, ...],
    confidence: str,
    tables: tuple[str, ...],
    fields: str | None,
    every: bool,
    fail_on: tuple[str, ...],
    screen: bool,
    theme: str | None,
    as_json: bool,
) -> int:
    """Compare B with A: the change of every figure with its interval, and whether it is better or worse.

    A and B are recordings, parts of recordings, documents of `lunscope run --json`, or loads of a sweep
    (TRIALS-FILE@8). A part is FILE@FROM..TO with times (14:30, 90 for seconds after the start, words of an event,
    epoch2) or FILE@epoch2. Without a part, a recording counts while its load ran.

    A figure is better, worse or differs if the whole interval is beyond delta and the floor of its unit, equivalent if
    it is within, and undecided otherwise, with the reason.

    Exits 0 if it could be compared, 1 with --fail-on if a figure has that verdict, 2 if nothing can be compared.
    """
    options = CompareOptions(
        _share("--delta", delta, 0.0, 10.0),
        _share("--confidence", confidence, 0.5, 0.9999),
        tuple(dict.fromkeys(fields.split(","))) if fields else (),
        every,
        _floors(floors),
    )
    chosen = tuple(dict.fromkeys(tables)) or TABLES
    _check_fields(chosen, options)
    if screen:
        if as_json or fail_on:
            raise UsageError("--screen shows the comparison: leave out --json and --fail-on")
        return _on_screen(a, b, CompareAsked((a, b), options, chosen), theme)
    comparison = compare(*_sides(a, b, options, chosen), options)
    if as_json:
        click.echo(dump_json(comparison_document(comparison)))
    else:
        print_sections(comparison_sections(comparison))
    for name, side in (("A", comparison.a), ("B", comparison.b)):
        if side.notice:
            say(f"{name}: {safe_text(side.text)}: {safe_text(side.notice)}")
    return _exit_code(comparison, fail_on)


def _on_screen(a: str, b: str, asked: CompareAsked, theme: str | None) -> int:
    from tui.app.start import start  # noqa: PLC0415 (as above)
    from tui.app_input import AppInput  # noqa: PLC0415 (as above)

    require_terminal("lunscope compare A B without --screen")
    paths = [PartText.parse(text).path for text in (a, b)]
    recording = next((path for path in paths if not is_document(path)), None)
    if recording is None:
        raise UsageError("--screen needs a recording as A or B: results alone are printed without it")
    asked = replace(asked, replayed=recording)
    go_on_in_child()
    source = ReplaySource(recording)
    source.pause(True)
    return start(AppInput(source, compared=asked), theme=theme)


def _sides(a: str, b: str, options: CompareOptions, tables: tuple[str, ...]) -> tuple[Side, Side]:
    """Read both.

    Raises:
        UsageError: they overlap, or have no row in common.
    """
    sides = open_side(a, options, tables), open_side(b, options, tables)
    paths = [PartText.parse(text).path for text in (a, b)]
    require_apart(*sides, same_file=paths[0].samefile(paths[1]))
    if not matched(*(side.rows for side in sides)):
        raise UsageError(f"nothing in common: A holds {holdings(sides[0])}; B holds {holdings(sides[1])}")
    return sides


def _check_fields(tables: tuple[str, ...], options: CompareOptions) -> None:
    for table in tables:
        if table not in KNOWN_TABLES:
            raise UsageError(f"table {safe_text(table)!r}: unknown; choose from {', '.join(KNOWN_TABLES)}")
    known = {field.id for table in tables for field in wanted_fields(table, CompareOptions(every=True))}
    for field_id in options.fields:
        if field_id not in known:
            name = safe_text(short_text(field_id, 80))
            raise UsageError(f"field {name!r}: not in {', '.join(tables)}, or cannot be merged from intervals")


def _share(option: str, text: str, least: float, most: float) -> float:
    """Read a percentage, with or without the sign."""
    number = decimal_number(text.strip().removesuffix("%").strip())
    if number is None or not least <= number / 100 <= most:
        raise UsageError(
            f"{option} {safe_text(short_text(text, 80))}: write {100 * least:g}% to {100 * most:g}%, such as 5%"
        )
    return number / 100


def _floors(texts: tuple[str, ...]) -> dict[Unit, float]:
    """Read floors by unit; a bare 0 is for all units."""
    floors: dict[Unit, float] = {}
    for text in texts:
        name, _, value = ("", "", text) if "=" not in text else text.rpartition("=")
        number = decimal_number(value.strip())
        units = [_UNITS[name.strip()]] if name.strip() in _UNITS else list(Unit) if not name and number == 0 else []
        if not units or number is None or number < 0:
            known = ", ".join(_UNITS)
            raise UsageError(
                f"--floor {safe_text(short_text(text, 80))}: write UNIT=VALUE of {known}, such as ms=0.01, or 0"
            )
        floors |= dict.fromkeys(units, number)
    return floors


def _exit_code(comparison: Comparison, fail_on: tuple[str, ...]) -> int:
    return int(any(comparison.verdicts[Verdict(name)] for name in fail_on))
