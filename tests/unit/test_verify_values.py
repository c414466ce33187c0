"""Verified loads, as far as they need no storage: options, words, journals."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from engine.errors import UsageError
from engine.job.describe import describe_job
from engine.job.file import dump_job, parse_job
from engine.job.spec import Backend, BlockShare, JobSpec, Knobs, Mode
from engine.job.validate import validate
from engine.verify.damage import DamageRow, damage_document, damage_of, damage_verdict, damaged_bytes_by_kind
from engine.verify.journal import journal_path, open_journal

ROWS: list[tuple[DamageRow, str]] = [
    (("flipped", 4096, 512, (1, 17)), "flipped at 4096 (512 bytes): bit 1 of byte 4098"),
    (("flipped", 4096, 512, (3, 17)), "flipped at 4096 (512 bytes): 3 bits, the first is bit 1 of byte 4098"),
    (("garbled", 1024, 512, (5, 9)), "garbled at 1024 (512 bytes): bytes 1029 to 1033 are not what was written"),
    (("torn", 1024, 512, (100,)), "torn at 1024 (512 bytes): one write ends at byte 1124, and something else follows"),
    (("torn", 0, 512, (7, 0)), "torn at 0 (512 bytes): write 7 did not get here, but elsewhere in its block"),
    (
        ("torn", 0, 512, (7, 1)),
        "torn at 0 (512 bytes): write 7, which was in flight when the load ended, did not get here, "
        "but elsewhere in its block",
    ),
    (("stale", 0, 4096, (3, 9)), "stale at 0 (4096 bytes): holds write 3, but write 9 was acknowledged"),
    (("lost", 0, 4096, (9,)), "lost at 0 (4096 bytes): nothing of the load is here, but write 9 was acknowledged"),
    (("misplaced", 0, 512, (8192,)), "misplaced at 0 (512 bytes): holds what belongs at 8192"),
    (("misplaced", 0, 512, (0, 1)), "misplaced at 0 (512 bytes): holds what belongs at 0 of target 2 of its load"),
    (("unreadable", 512, 512, (errno.EIO,)), "unreadable at 512 (512 bytes): cannot be read: EIO"),
]


@pytest.mark.parametrize(("row", "text"), ROWS)
def test_damage_in_words(row: DamageRow, text: str) -> None:
    assert damage_of(row).text == text
    document = damage_document(damage_of(row))
    assert (document["kind"], document["offset"], document["bytes"], document["text"]) == (*row[:3], text)


def test_bytes_of_each_kind_add_up() -> None:
    assert damaged_bytes_by_kind(damage_of(row) for row, _ in ROWS[:5]) == {
        "flipped": 1024,
        "garbled": 512,
        "torn": 1024,
    }
    assert [damage_verdict(count) for count in (0, 1, 2000)] == ["no damage", "1 damaged range", "2,000 damaged ranges"]


def test_the_option_is_kept_in_job_files_and_reported() -> None:
    job = JobSpec(verify=True)
    validate(job)
    assert parse_job("verify = true") == parse_job(dump_job(job)) == job
    assert not parse_job(dump_job(JobSpec())).verify
    assert describe_job(job).endswith(", verified")
    with pytest.raises(UsageError, match="line 1: verify: 1 is not true or false"):
        parse_job("verify = 1")


def test_jobs_that_cannot_be_verified_are_refused() -> None:
    with pytest.raises(UsageError, match="--verify: the aio engine marks no writes"):
        validate(JobSpec(verify=True, backend=Backend.AIO))
    with pytest.raises(UsageError, match="--verify: it marks every 512 bytes, and 1000 is not"):
        validate(JobSpec(knobs=Knobs(blocks=(BlockShare(1000),), mode=Mode.BUFFERED), verify=True))


def test_a_journal_belongs_to_what_a_name_leads_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "disk").touch()
    (tmp_path / "link").symlink_to(tmp_path / "disk")
    path = journal_path(str(tmp_path / "disk"))
    assert path == journal_path(str(tmp_path / "link"))
    assert path.parent == tmp_path / "state" / "lunscope" / "verify"
    assert path != journal_path(str(tmp_path / "other"))


def test_a_user_without_a_home_has_no_journals(monkeypatch: pytest.MonkeyPatch) -> None:
    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    with pytest.raises(FileNotFoundError):
        journal_path("/dev/none")
    assert open_journal("/dev/none") is None


def test_what_is_no_journal_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = journal_path("/dev/none")
    assert open_journal("/dev/none") is None
    path.parent.mkdir(parents=True)
    for content in (b"", b"LUNSJRN1" * 1000, bytes(8192)):
        path.write_bytes(content)
        assert open_journal("/dev/none") is None
    path.unlink()
    path.symlink_to("/etc/passwd")
    assert open_journal("/dev/none") is None
