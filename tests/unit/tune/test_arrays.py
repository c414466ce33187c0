"""The speeds of work on md arrays: their own or those of the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from engine.errors import UsageError
from engine.tune.journal import Journal
from engine.tune.tree import KernelTree
from tests.fake_kernel import FakeDisk
from tests.unit.tune.hosts import change, make_host, plan_of, present


def test_a_speed_is_set_and_the_host_s_restored(tmp_path: Path) -> None:
    kernel = make_host(tmp_path / "host")
    speeds = {"md/sync_speed_min": "1000 (system)\n", "md/sync_speed_max": "50000 (local)\n"}
    kernel.add(FakeDisk("md1", 9, 1, lean=True, attributes=speeds, at="virtual/block/md1"))
    with KernelTree(kernel.sysfs) as tree:
        (write,) = plan_of(tree, ["sync_speed_max=20000"], "all").writes
        assert (write.target.name, write.before, write.after) == ("md1", "50000", "20000")
        with pytest.raises(UsageError, match=r"0 is not legal: system\|1\.\."):
            plan_of(tree, ["sync_speed_min=0"], "md1")
        (write,) = plan_of(tree, ["sync_speed_min=5000"], "md1").writes
        assert write.before == "system"

        class Kernel(KernelTree):
            """Says whose speed it is, as md does."""

            def write(self, path: str, text: str) -> None:
                super().write(path, "1000 (system)" if text == "system" else f"{text} (local)")

        with Kernel(kernel.sysfs) as md:
            made = change(md, Journal(tmp_path / "state"), ["sync_speed_min=5000"], "md1")
            assert present(kernel, "md/sync_speed_min", "md1") == ["5000 (local)"]
            assert made.end().problems == ()
    assert present(kernel, "md/sync_speed_min", "md1")[0].startswith(("system", "1000 (system)"))
