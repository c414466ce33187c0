"""Loads on the rows of a LUN and its paths, over a real dm-multipath map."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from tests import needs
from tests.lab.guest import run_in_guest

pytestmark = [
    needs.guest,
    pytest.mark.skipif(sys.version_info[:2] != (3, 11), reason="the guest has Python 3.11, whose packages are needed"),
]


def test_a_lun_is_driven_by_its_map_by_one_path_and_by_all_paths() -> None:
    text = run_in_guest("scsi-mp", "python3 -m tests.lab.drive_lun")
    found: dict[str, Any] = next(json.loads(line) for line in text.splitlines() if line.startswith("{"))
    own_map, every = found["of_lun"]
    assert own_map.startswith("/dev/mapper/")
    assert every.startswith("lun:sd")
    assert every.count(",") == found["paths"] - 1
    assert found["of_path"][1:] == found["of_lun"]
    assert set(found["of_path"]) <= set(found["listed"])
    assert found["use of path"].startswith("is held by /dev/dm-")
    for target, load in found["loads"].items():
        assert load["reading"] == "", target
        assert load["ran"], target
        assert load["ios"], target
        assert load["errors"] == 0, target
        assert (load["writing"] == "") == (target == own_map), target
