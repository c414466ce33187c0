"""The files of examples/ run as they are, but for less time, and leave nothing behind."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests import needs
from tests.kernel import forked_command

EXAMPLES = Path(__file__).parents[2] / "examples"
SHORTER = {
    r'"(\d)0?s"': r'"\g<1>00ms"',
    r"runtime=5": "runtime=300ms",
    r"DURATION ->2": "DURATION ->0.2",
    r"64m": "16m",
}


@needs.io_uring
@pytest.mark.parametrize(
    ("name", "epochs"), [("reads.toml", 1), ("steps.toml", 4), ("mixed.fio", 2), ("threads.ndisk", 4)]
)
def test_examples_run_in_scratch_files(tmp_path: Path, name: str, epochs: int) -> None:
    text = (EXAMPLES / name).read_text(encoding="utf-8")
    for long, short in SHORTER.items():
        text = re.sub(long, short, text)
    (tmp_path / name).write_text(text, encoding="utf-8")
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    done = forked_command.lunscope(
        "run", "--tier", "kernel", tmp_path / name, "--headless", "--json", "--scratch-dir", scratch
    )
    assert done.returncode == 0, done.stderr
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum(len(result["epochs"]) for result in results) == epochs
    assert list(scratch.iterdir()) == []
    assert sorted(tmp_path.iterdir()) == sorted([tmp_path / name, scratch])
