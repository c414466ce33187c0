"""A short run of every fuzzer, the inputs that once failed, and a fuzzer that does fail."""

from __future__ import annotations

import importlib
import random
import time
from pathlib import Path

import pytest

from tests.fuzz.campaign import KEPT, HangError, assert_printable, campaign, limited
from tests.fuzz.runner import MOST_BYTES, fuzzer_names, least_of, refusal_of, run_fuzzer

SEED = 1
SECONDS = 1.0
KEPT_INPUTS = sorted(KEPT.glob("*/*.bin"))


DISTURBING = "stacks"
"""What it makes hides users of devices from everybody: loads of other tests on blank devices would be refused."""


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.alone] if name == DISTURBING else []) for name in fuzzer_names()]
)
def test_a_short_run_finds_nothing(name: str) -> None:
    if refusal := refusal_of(name):
        pytest.skip(refusal)
    least = least_of(name, "LEAST_IN_TEST")
    outcome = run_fuzzer(name, SEED, None, SECONDS, least)
    assert not outcome.failure
    assert outcome.tried >= max(1, least)
    assert outcome.most_bytes <= MOST_BYTES


@pytest.mark.parametrize("path", KEPT_INPUTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_what_once_failed_does_no_more(path: Path) -> None:
    module = importlib.import_module(f"tests.fuzz.{path.parent.name}")
    with limited():
        module.attempt(path.read_bytes())


def test_what_fails_is_saved_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LUNSCOPE_FUZZ_FOUND", str(tmp_path))

    def attempt(data: bytes) -> None:
        if data[0] == 3:
            raise KeyError("three")

    with pytest.raises(AssertionError, match="KeyError") as caught:
        campaign("sample", lambda dice: bytes([dice.randrange(5)]), attempt, 1, 1000, 60.0)
    (path,) = tmp_path.rglob("*.bin")
    assert path.read_bytes() == b"\x03"
    assert str(path) in str(caught.value)


def test_the_same_seed_gives_the_same_inputs() -> None:
    def inputs(seed: int) -> list[bytes]:
        seen: list[bytes] = []
        campaign("sample", lambda dice: dice.randbytes(8), seen.append, seed, 20, 60.0)
        return seen

    assert inputs(1) == inputs(1) != inputs(2)


def test_what_hangs_is_ended() -> None:
    with pytest.raises(HangError), limited(0.2):
        time.sleep(30)


@pytest.mark.parametrize("line", ["\x1b[2J", "a\x07", "\u202eevil", "two\nlines", "\x9b31m"])
def test_raw_escapes_are_seen(line: str) -> None:
    with pytest.raises(AssertionError, match="raw control character"):
        assert_printable([line])


def test_mutations_are_many() -> None:
    from tests.fuzz.mutate import damaged

    assert len({damaged(b"abcdefgh" * 50, random.Random(seed)) for seed in range(200)}) > 150
