"""Job files: TOML with the names of the options of `lunscope run`.

    target = ["/dev/sdb", "/dev/sdc"]   # "scratch" asks for a file that lunscope makes and removes,
                                        # "lun:sda,sdb=3" drives two paths to one LUN, the second of weight 3
    rw = "randrw"
    read_pct = 70
    bs = "4k:60,16k:40"
    write_bs = "64k"
    distribution = "hot:90/10"
    qd = 16
    stripe_width = 2
    runtime = "30s"

Keys may have hyphens for underscores. Permission to write is given on the command line only.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from engine.errors import UsageError
from engine.job.fixed_settings import HEAD, TAIL, Setting, access_and_mix
from engine.job.knobs import KNOBS_BY_KEY, Knobs, knob_problems
from engine.job.spec import JobSpec
from engine.job.toml_values import WrongTypeError
from engine.job.validate import setting_problems
from engine.replacing import replace
from engine.text import safe_text, short_text
from engine.toml_text import parse_toml_text

_SETTINGS = {setting.key: setting.field for setting in (*HEAD, *TAIL) if setting.field}
_READERS: dict[str, Callable[[object], Any]] = {
    **{setting.key: setting.read for setting in HEAD},
    **{key: knob.kind.read for key, knob in KNOBS_BY_KEY.items()},
    **{setting.key: setting.read for setting in TAIL},
}
"""Readers by key; each raises WrongTypeError, or UsageError for text that cannot be read."""
MOST_OF_A_KEY = 100
"""Characters that an error shows of a key."""
_COMMAND_LINE_ONLY = ("allow_write", "destroy_data", "precondition")


class JobSource(Struct, frozen=True):
    """The text of a job file, to find the line of a key; tomllib gives no positions."""

    path: str
    text: str
    first_line: int = 1
    """Line at which the table begins that is read."""

    def error(self, key: str, what: str) -> UsageError:
        """Build the error for one key."""
        pattern = re.compile(rf"""^\s*(?:\[+\s*)?["']?{re.escape(key)}["']?\s*[=.\]]""")
        lines = enumerate(self.text.splitlines(), 1)
        number = next((number for number, line in lines if number >= self.first_line and pattern.match(line)), None)
        return UsageError(
            f"{self.path}{f', line {number}' if number else ''}: {short_text(safe_text(key), MOST_OF_A_KEY)}: {what}"
        )


def _unknown(source: JobSource, key: str, name: str) -> UsageError:
    if name in _COMMAND_LINE_ONLY:
        return source.error(key, f"not in a job file: give --{name.replace('_', '-')} on the command line")
    near = difflib.get_close_matches(name, _READERS, n=1)
    hint = f"did you mean {near[0]}?" if near else f"known are {', '.join(_READERS)}"
    return source.error(key, f"unknown key: {hint}")


def read_values(source: JobSource, table: Mapping[str, object]) -> dict[str, tuple[str, Any]]:
    """Read the values of a table by the names of their keys, each with the key as it was written.

    Raises:
        UsageError: an unknown key, one that comes twice, or a value that it does not take.
    """
    values: dict[str, tuple[str, Any]] = {}
    for key, raw in table.items():
        name = key.replace("-", "_")
        if name not in _READERS:
            raise _unknown(source, key, name)
        if name in values:
            raise source.error(key, f"given twice, also as {values[name][0]}")
        try:
            values[name] = key, _READERS[name](raw)
        except WrongTypeError as wrong:
            raise source.error(key, f"{raw!a} is not {wrong}") from None
        except UsageError as error:
            raise source.error(key, str(error)) from None
    return values


def job_of(source: JobSource, values: Mapping[str, tuple[str, Any]]) -> JobSpec:
    """Make a job of what was read.

    Raises:
        UsageError: a value is out of range.
    """
    given = {name: value for name, (_, value) in values.items()}
    try:
        access, read_pct = access_and_mix(given.get("rw"), given.get("read_pct"))
    except UsageError as error:
        raise source.error(values["rw"][0], str(error)) from None
    turned = {knob.id: given[key] for key, knob in KNOBS_BY_KEY.items() if key in given}
    knobs = replace(Knobs(), **(turned | {"read_pct": read_pct}))
    settings = {_SETTINGS[name]: given[name] for name in _SETTINGS if name in given}
    if "target" in given and "stripe_width" not in given:
        knobs = replace(knobs, stripe_width=len(given["target"]))
    job = replace(JobSpec(), knobs=knobs, access=access, **settings)
    for problem in (*knob_problems(job.knobs), *setting_problems(job)):
        key = values.get(problem.option.replace("-", "_"))
        if key is not None:
            raise source.error(key[0], problem.text)
    return job


def parse_job(text: str, path: str = "job") -> JobSpec:
    """Make a job of the text of a job file; `path` names it in errors.

    Without `stripe_width` the job is as wide as it has targets.

    Raises:
        UsageError: no TOML, an unknown key, a wrong type or a value out of range; names the key, the file and the line.
    """
    source = JobSource(path, text)
    return job_of(source, read_values(source, parse_toml(text, path)))


def parse_toml(text: str, path: str, what: str = "job file") -> dict[str, Any]:
    """Read a TOML document; a number of more digits than Python reads is none either.

    Raises:
        UsageError: it is none, or nests too deeply.
    """
    try:
        return parse_toml_text(text)
    except ValueError as error:
        raise UsageError(f"{path}: not a {what} in TOML: {error}") from None


def dump_job(job: JobSpec) -> str:
    """Write a job as a job file that `parse_job` reads back as the same job."""
    knobs = [knob.line(knob.of(job.knobs)) for knob in KNOBS_BY_KEY.values() if knob.of(job.knobs) is not None]
    return "".join(f"{line}\n" for line in (*_lines(HEAD, job), *knobs, *_lines(TAIL, job)))


def _lines(settings: Iterable[Setting], job: JobSpec) -> Iterator[str]:
    for setting in settings:
        value = setting.write(job)
        if value is not None:
            yield f"{setting.key} = {value}"
