"""What fails beside other tests is run again alone at the end of `make test`: a busy machine may have been the reason.

As a plugin of pytest (`-p tests.again --failed-to FILE`) it keeps tests that fail in a file, for which the run then
counts as passed; as a command (`python -m tests.again FILE`) it runs them again and says which passed alone. Few may:
many failures have another reason.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest
from msgspec import Struct

MOST_PASSED_ALONE = 3
MOST_RUN_AGAIN = 10
"""More take too long, and do not fail by chance."""
_TEXT_LENGTH = 200
_GROUP = re.compile(r"@[^\]]*$")
"""What pytest-xdist adds to the name of a test that is distributed by groups."""


class Failure(Struct, frozen=True):
    """A test that failed, and the first line of the reason."""

    test: str
    reason: str


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the file."""
    parser.addoption("--failed-to", type=Path, help="append tests that fail to this file, and exit as if they passed")


def pytest_configure(config: pytest.Config) -> None:
    """Keep failures where they are reported from all workers."""
    path = config.getoption("failed_to")
    if path is not None and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Keeper(path), "failures of tests")


class _Keeper:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._failures: dict[str, Failure] = {}
        self._has_other_trouble = False

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            test = _GROUP.sub("", report.nodeid)
            self._failures.setdefault(test, Failure(test, _reason(report)))

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._has_other_trouble |= report.failed

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if not self._failures:
            return
        with self._path.open("ab") as file:
            file.writelines(msgspec.json.encode(failure) + b"\n" for failure in self._failures.values())
        if session.exitstatus == pytest.ExitCode.TESTS_FAILED and not self._has_other_trouble:
            session.exitstatus = pytest.ExitCode.OK


def _reason(report: pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    lines = str(crash.message if crash is not None else report.longrepr).strip().splitlines() or ["no reason given"]
    return lines[0][:_TEXT_LENGTH]


def read_failures(path: Path) -> list[Failure]:
    """Read the failures of all runs, each test once; none where no file was made."""
    lines = path.read_bytes().splitlines() if path.exists() else []
    return list(
        {failure.test: failure for failure in (msgspec.json.decode(line, type=Failure) for line in lines)}.values()
    )


def verdict(first: Sequence[Failure], again: Sequence[Failure]) -> tuple[list[str], bool]:
    """Say of each test whether it passed alone, and whether all of it counts as passed."""
    twice = {failure.test for failure in again}
    lines = [
        f"{'failed twice' if each.test in twice else 'passed alone'}: {each.test}: {each.reason}" for each in first
    ]
    passed_alone = len(first) - len(twice)
    if passed_alone > MOST_PASSED_ALONE:
        lines.append(f"{passed_alone} tests passed only alone, {MOST_PASSED_ALONE} may: repair what they wait for")
    return lines, not twice and passed_alone <= MOST_PASSED_ALONE


def main(path: Path) -> int:
    """Run again what is in the file; return the exit code of `make test`."""
    first = read_failures(path)
    if len(first) > MOST_RUN_AGAIN:
        print(f"{len(first)} tests failed: they are not run again")  # noqa: T201 (a command of the Makefile)
    if not 0 < len(first) <= MOST_RUN_AGAIN:
        return int(bool(first))
    with tempfile.TemporaryDirectory() as folder:
        failed = Path(folder) / "failed"
        options = ["-q", "-p", "tests.again", "--failed-to", str(failed)]
        tests = [failure.test for failure in first]
        code = subprocess.run([sys.executable, "-m", "pytest", *options, *tests], check=False).returncode
        lines, is_passed = verdict(first, read_failures(failed))
    print("\n".join(lines))  # noqa: T201 (as above)
    return code or int(not is_passed)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
