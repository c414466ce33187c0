"""Every verb as a real process, in surroundings that nobody hopes for: at most one line, an exit code, no traceback."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pytest

from collectors.session.writer import SessionWriter
from tests.ended import has_ended
from tests.fake_kernel import FakeDisk, FakeKernel
from tests.kernel.forked_command import Around, shared
from tests.session_samples import Machine

COMMAND = (sys.executable, "-m", "tui")
LONGEST_S = 60.0
NORMAL = Around()

VERBS: dict[str, tuple[str, ...]] = {
    "watch": ("watch",),
    "run": ("run", "--headless", "--runtime", "300ms", "--rate", "100", "--size", "1m", "--tier", "kernel"),
    "run-json": (
        "run",
        "--json",
        "--runtime",
        "300ms",
        "--rate",
        "100",
        "--size",
        "1m",
        "--record",
        "{folder}/run.lun",
    ),
    "sweep": ("sweep", "--vary", "qd=1,2", "--target", "{folder}/absent"),
    "verify": ("verify", "{folder}/verified"),
    "report": ("report", "--all", "--tier", "kernel", "0.2", "1"),
    "report-from": ("report", "--from", "{session}", "--json"),
    "report-html": ("report", "--from", "{session}", "--html", "-"),
    "report-md": ("report", "--from", "{session}", "--md", "{folder}/new.md"),
    "scan": ("scan", "--json"),
    "scan-from": ("scan", "--from", "{session}"),
    "record": ("record", "-o", "{folder}/new.lun", "--duration", "0.2", "--interval", "0.1", "--tier", "kernel"),
    "replay": ("replay", "{session}"),
    "export": ("export", "{session}", "--format", "csv"),
    "metrics": ("metrics", "--textfile", "{folder}/new.prom", "--once"),
    "compare": ("compare", "{session}@0..2.5", "{session}@2.5.."),
    "tune": ("tune", "list", "--json"),
    "path": ("path", "list", "loop0"),
    "doctor": ("doctor", "--json"),
    "probe": ("probe", "--socket", "{folder}/socket"),
    "help": ("--help",),
    "version": ("--version",),
    "none": (),
}
PRINTS = {
    "run",
    "run-json",
    "report",
    "report-from",
    "report-html",
    "scan",
    "scan-from",
    "export",
    "compare",
    "tune",
    "doctor",
    "help",
    "version",
}
"""Verbs that have something for standard output here."""


SURROUNDINGS: dict[str, Around] = {
    "no stdin": Around(closed=(0,)),
    "no stdout": Around(closed=(1,)),
    "no stderr": Around(closed=(2,)),
    "nothing open": Around(closed=(0, 1, 2)),
    "full stdout": Around(files={1: "/dev/full"}),
    "full stderr": Around(files={2: "/dev/full"}),
    "5 descriptors": Around(most_descriptors=5),
    "10 descriptors": Around(most_descriptors=10),
}
IN_ALL = ("none", "run-json", "report")
"""Verbs that are run in all surroundings; what is done with standard streams is the same for all verbs."""
OF_ALL = ("no stderr", "full stdout", "10 descriptors")
"""Surroundings in which all verbs are run."""
CASES = [(verb, around) for verb in VERBS for around in SURROUNDINGS if verb in IN_ALL or around in OF_ALL]
FROM_THE_START = {("5 descriptors", verb) for verb in IN_ALL} | {
    ("nothing open", verb) for verb in ("none", "run-json")
}
"""Processes that are started, not forked: Python starts otherwise where nothing is open, and with few descriptors each
verb may fail in an import of its own."""


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path, machine = tmp_path_factory.mktemp("sessions") / "sound.lun", Machine(disks=4, active=4)
    with SessionWriter(path) as writer:
        for _ in range(5):
            writer.write(machine.sample())
    return path


class Done:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def lunscope(tmp_path: Path, session: Path) -> Callable[..., Done]:
    (tmp_path / "verified").write_bytes(bytes(4096))
    out, err, socket = tmp_path / "out", tmp_path / "err", tmp_path / "socket"

    def run(
        verb: str, *more: str, recording: Path = session, around: Around = NORMAL, from_the_start: bool = False
    ) -> Done:
        words = [word.format(folder=tmp_path, session=recording) for word in (*VERBS[verb], *more)]
        environment = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "XDG_CACHE_HOME": str(tmp_path)}
        for printed in (out, err):
            printed.write_bytes(b"")
        start = _started if from_the_start else shared().start
        started = start(words, environment, around, tmp_path)
        process = started if isinstance(started, int) else started.pid
        if verb == "probe":
            _wait_until_it_serves(process, socket)
        code = shared().wait(process, LONGEST_S) if isinstance(started, int) else started.wait(LONGEST_S)
        crashes = list((tmp_path / "state").rglob("*.txt"))
        assert not crashes, crashes[0].read_text()
        return Done(code, *(printed.read_text(errors="surrogateescape") for printed in (out, err)))

    return run


def _started(
    words: Sequence[str], environment: Mapping[str, str], around: Around, folder: Path
) -> subprocess.Popen[bytes]:
    """Start Python and lunscope."""
    files = {1: str(folder / "out"), 2: str(folder / "err"), **around.files}
    with Path(files[1]).open("wb") as out, Path(files[2]).open("wb") as err:
        return subprocess.Popen(
            [*COMMAND, *words],
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=environment,
            preexec_fn=around.set_limit,  # noqa: PLW1509 (before the test has threads)
        )


def _wait_until_it_serves(process: int, path: Path) -> None:
    """Wait until the helper can be asked, and end it; or until it has ended by itself."""
    deadline_s = time.monotonic() + LONGEST_S
    while not path.exists() and not has_ended(process):
        assert time.monotonic() < deadline_s, "the helper neither serves nor ends"
        time.sleep(0.01)
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, signal.SIGTERM)


def assert_clean(done: Done) -> None:
    assert "Traceback" not in done.err + done.out
    assert "Exception ignored" not in done.err
    assert "unexpected error" not in done.err
    assert done.code in {0, 1, 2}, done.err
    assert not [c for c in done.err + done.out if ord(c) < 32 and c not in "\n"]
    if done.code:
        assert [line for line in done.err.splitlines() if line.startswith("lunscope")] or not done.err


@pytest.mark.parametrize(("verb", "around"), CASES)
def test_no_verb_ends_with_a_traceback(verb: str, around: str, lunscope: Callable[..., Done]) -> None:
    done = lunscope(verb, around=SURROUNDINGS[around], from_the_start=(around, verb) in FROM_THE_START)
    assert_clean(done)
    if "stdout" in around and verb in PRINTS:
        reason = "No space left on device" if "full" in around else "it is closed"
        assert done.code == 1
        assert f"standard output: {reason}" in done.err
    if around in {"no stderr", "full stderr", "no stdin"} and verb in PRINTS - {"run", "run-json"}:
        assert done.code == 0


def test_two_hundred_targets_and_few_descriptors_say_the_limit(tmp_path: Path, lunscope: Callable[..., Done]) -> None:
    targets = []
    for number in range(200):
        path = tmp_path / f"target{number}"
        path.write_bytes(bytes(65536))
        targets += ["--target", str(path)]
    done = lunscope("run", *targets, around=Around(most_descriptors=100))
    assert_clean(done)
    assert done.code in {1, 2}
    assert "the limit is 100: raise ulimit -n" in done.err


def _hostile_sessions(folder: Path, sound: Path) -> list[Path]:
    data, dice = sound.read_bytes(), random.Random(3)
    contents = [b"", b"SQLite format 3\0", data[:5000], bytes(dice.randbytes(20_000)), data[:100] + bytes(8000)]
    contents.append(data.replace(b"CREATE TABLE ticks", b"CREATE TABLE \xff\xfe\xff\xfe\xff", 1))
    paths = []
    for number, content in enumerate(contents):
        path = folder / f"hostile{number}.lun"
        path.write_bytes(content)
        paths.append(path)
    return [*paths, folder, Path("/dev/zero"), folder / "not\x1bthere"]


@pytest.mark.parametrize("verb", ["report-from", "scan-from", "replay", "export"])
def test_no_session_makes_a_traceback(verb: str, tmp_path: Path, session: Path, lunscope: Callable[..., Done]) -> None:
    for path in _hostile_sessions(tmp_path, session):
        done = lunscope(verb, recording=path)
        assert_clean(done)
        assert done.code in {1, 2}


@pytest.mark.parametrize("verb", ["watch", "run", "report", "scan", "record", "doctor", "probe"])
def test_no_tree_makes_a_traceback(verb: str, tmp_path: Path, lunscope: Callable[..., Done]) -> None:
    kernel = FakeKernel(tmp_path / "roots")
    kernel.add(FakeDisk("sda"), FakeDisk("sdb", minor=16))
    (kernel.procfs / "meminfo").write_text("MemTotal: -1 kB\nMemFree: -1 kB\nMemAvailable: ² kB\nDirty: 9" + "9" * 6000)
    (kernel.procfs / "stat").write_text("cpu  -1 nan inf 1e999 x\ncpu0 1\nbtime \xb2\n")
    (kernel.procfs / "pressure").mkdir()
    (kernel.procfs / "pressure/io").write_text(f"some avg10=0 total={'9' * 5000}\nfull total=٣\n")
    (kernel.procfs / "²").mkdir()
    for number, content in enumerate(("²", "9" * 5000, "\x1b[2J", "-1")):
        kernel.add(FakeDisk(f"sd{'cdef'[number]}", minor=32 + number, attributes={"size": content, "dev": content}))
    done = lunscope(verb, "--procfs", str(kernel.procfs), "--sysfs", str(kernel.sysfs))
    assert_clean(done)
