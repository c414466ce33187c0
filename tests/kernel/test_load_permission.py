"""A permission to write is for the device or file that had the name when it was given, whatever has the name later."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from collectors.fleet.agent_load import AgentLoad
from collectors.fleet.frames import Frame, FrameError, decode
from engine.errors import OtherTargetError, RefusedError
from engine.guard import open_targets
from engine.guard.given import bound
from engine.job.spec import JobSpec, Knobs, Permissions, TargetSpec
from engine.running.control import LoadControl
from engine.running.status import LoadState
from tests import needs
from tests.attaching import attached_instead
from tests.kernel.conftest import Storage
from tui.load.load_controller import LoadController

MIB = 1 << 20
WRITING = Knobs(read_pct=0.0, rate_iops=100.0)


@pytest.fixture
def precious(storage: Storage) -> Path:
    """A file as large as the device, full of somebody's data."""
    image = storage.image(8 * MIB)
    image.write_bytes(os.urandom(8 * MIB))
    return image


@pytest.fixture
def control() -> Iterator[LoadControl]:
    control = LoadControl()
    yield control
    control.close()


@needs.root
@needs.loop
@pytest.mark.parametrize("destroys", [False, True])
def test_a_name_typed_once_is_not_good_for_another_device(
    storage: Storage, precious: Path, control: LoadControl, destroys: bool
) -> None:
    device, before = storage.loop(8 * MIB), precious.read_bytes()
    controller = LoadController(control, JobSpec((TargetSpec(device),), WRITING), Permissions(destroy_data=destroys))
    question = controller.question(device)
    assert question.found == f"{device} holds nothing but zeros in all 128 sampled blocks of 64 KiB."
    controller.confirm(question)
    for _ in range(2):
        controller.start()
        assert controller.status.state is LoadState.RUNNING
        controller.stop()
    with attached_instead(device, precious):
        with pytest.raises(RefusedError, match="All permissions to write and to destroy data are forgotten") as caught:
            controller.start()
        assert f"{device} is another target than when writing was allowed: it was device 7:" in str(caught.value)
        assert controller.unconfirmed(WRITING) == (device,)
        assert controller.permissions == Permissions()
        again = controller.question(device)
        assert f"{device} holds data that is not zero at byte 0" in again.found
        controller.confirm(again)
        with pytest.raises(RefusedError, match="add --destroy-data"):
            controller.start()
    assert precious.read_bytes() == before


@needs.root
@needs.loop
def test_a_device_that_changes_before_the_dialog_is_said_there(
    storage: Storage, precious: Path, control: LoadControl
) -> None:
    device = storage.loop(8 * MIB)
    allowed = bound(Permissions(frozenset({device}), destroy_data=True))
    controller = LoadController(control, JobSpec((TargetSpec(device),), WRITING), allowed)
    with attached_instead(device, precious):
        question = controller.question(device)
        assert f"{device} is another target than when writing was allowed" in question.forgotten
        assert "All permissions to write and to destroy data are forgotten." in question.forgotten
        assert controller.permissions == Permissions()


@needs.root
@needs.loop
def test_a_device_that_changes_while_the_dialog_is_open_is_refused(
    storage: Storage, precious: Path, control: LoadControl
) -> None:
    device, before = storage.loop(8 * MIB), precious.read_bytes()
    controller = LoadController(control, JobSpec((TargetSpec(device),), WRITING), Permissions(destroy_data=True))
    question = controller.question(device)
    with attached_instead(device, precious):
        controller.confirm(question)
        with pytest.raises(RefusedError, match="is another target than when writing was allowed"):
            controller.start()
    assert precious.read_bytes() == before


@needs.root
@needs.loop
def test_a_permission_of_the_command_line_is_for_the_device_of_its_start(storage: Storage, precious: Path) -> None:
    device, before = storage.loop(8 * MIB), precious.read_bytes()
    job = JobSpec((TargetSpec(device),), WRITING)
    allowed = bound(Permissions(frozenset({device}), destroy_data=True))
    open_targets(job, allowed)[0].close()
    with attached_instead(device, precious), pytest.raises(OtherTargetError, match="diskseq"):
        open_targets(job, allowed)
    assert precious.read_bytes() == before


def test_a_permission_is_for_the_file_that_had_the_name(tmp_path: Path) -> None:
    path, other = tmp_path / "file", tmp_path / "other"
    for each in (path, other):
        each.write_bytes(bytes(MIB))
    job = JobSpec((TargetSpec(str(path)),), WRITING, size_bytes=MIB)
    allowed = bound(Permissions(frozenset({str(path)}), destroy_data=True))
    open_targets(job, allowed)[0].close()
    other.rename(path)
    with pytest.raises(OtherTargetError, match=r"it was inode \d+ of .*, and is inode \d+ of"):
        open_targets(job, allowed)
    path.unlink()
    with pytest.raises(OtherTargetError, match="and is not there now"):
        open_targets(job, allowed)


def test_a_file_that_appears_under_a_new_name_is_not_what_was_allowed(tmp_path: Path) -> None:
    path = tmp_path / "file"
    allowed = bound(Permissions(frozenset({str(path)}), destroy_data=True))
    path.write_bytes(bytes(MIB))
    with pytest.raises(OtherTargetError, match="it was not there, and is inode"):
        open_targets(JobSpec((TargetSpec(str(path)),), WRITING, size_bytes=MIB), allowed)


def test_a_file_that_the_load_made_may_be_written_again(tmp_path: Path, control: LoadControl) -> None:
    path = tmp_path / "file"
    allowed = bound(Permissions(frozenset({str(path)}), destroy_data=True))
    job = JobSpec((TargetSpec(str(path)),), WRITING, size_bytes=MIB)
    for _ in range(3):
        control.arm(job, allowed)
        control.start()
        control.stop()
    assert path.stat().st_size == MIB


class Controller:
    """Asks an agent of the same process to arm, as the controller of a fleet does."""

    def __init__(self) -> None:
        self._answers: queue.SimpleQueue[bytes] = queue.SimpleQueue()

    def arm(self, path: Path, *, allowed: bool, size: str = "", given: object = None) -> Frame:
        control = LoadControl()
        agent = AgentLoad(control, self._answers.put, threading.Event())
        frame = {
            "type": "arm",
            "number": 1,
            "job": f'target = ["{path}"]\n{size}',
            "allow_write": [str(path)] * allowed,
            "destroy_data": True,
            "given": given or {},
        }
        agent.handle(frame)
        answer = decode(self._answers.get(timeout=60).rstrip())
        control.close()
        return answer


def test_an_agent_makes_no_file_that_its_controller_did_not_allow(tmp_path: Path) -> None:
    path = tmp_path / "nologin"
    answer = Controller().arm(path, allowed=False, size='size = "1m"')
    assert "a job file or fleet makes files in the scratch folder only" in answer["error"]
    assert not path.exists()


def test_what_an_agent_was_allowed_is_known_to_the_next_connection(tmp_path: Path) -> None:
    path, other = tmp_path / "file", tmp_path / "other"
    for each in (path, other):
        each.write_bytes(bytes(MIB))
    controller = Controller()
    first = controller.arm(path, allowed=True)
    assert (first["error"], list(first["given"])) == ("", [str(path)])
    assert controller.arm(path, allowed=True, given=first["given"])["error"] == ""
    other.rename(path)
    again = controller.arm(path, allowed=True, given=first["given"])
    assert "is another target than when writing was allowed" in again["error"]


def test_damaged_permissions_of_a_controller_are_refused(tmp_path: Path) -> None:
    with pytest.raises(FrameError, match="a frame with damaged permissions"):
        Controller().arm(tmp_path, allowed=True, given={"x": {"device": "7:0"}})
