"""Cases of text in files, each with what is made of it: a line that changes is shown beside the one that was accepted.

A case is lines of input, then lines that begin with `=> `; blank lines are between cases, and lines that begin with
`## ` say what the next ones are about. `LUNSCOPE_ACCEPT=1 pytest ...` writes what is said now into the files.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import takewhile
from pathlib import Path

from engine.errors import LunscopeError, UsageError

ANSWER = "=> "


def assert_golden(path: Path, say: Callable[[str], str]) -> None:
    """Compare what is said of each input of a file with what the file says."""
    accepted = path.read_text()
    written = "\n".join(_answered(case, say) for case in accepted.strip("\n").split("\n\n")) + "\n"
    if os.environ.get("LUNSCOPE_ACCEPT"):
        path.write_text(written.rstrip("\n") + "\n")
        return
    assert written.rstrip("\n") + "\n" == accepted


def _answered(case: str, say: Callable[[str], str]) -> str:
    if case.startswith("## "):
        return f"{case}\n"
    text = "\n".join(takewhile(lambda line: not line.startswith(ANSWER), case.split("\n")))
    try:
        said = say(text)
    except LunscopeError as error:
        said = f"{'refused' if error.exit_code == UsageError.exit_code else 'failed'}: {error}"
    return text + "".join(f"\n{ANSWER}{line}" for line in said.split("\n")) + "\n"
