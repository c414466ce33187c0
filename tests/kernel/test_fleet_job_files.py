"""Job files of strangers for fleets: a group named in them reaches no command of groups.conf, one in an option does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import needs
from tests.kernel.forked_command import lunscope

pytestmark = [needs.cluster_shell]


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A groups.conf of the operator, and the file in which it writes the names that it is asked for."""
    names = tmp_path / "asked"
    (tmp_path / "clustershell").mkdir()
    (tmp_path / "clustershell/groups.conf").write_text(
        f"[Main]\ndefault: local\n[local]\nmap: echo '$GROUP' >>{names}; echo db1\nlist: echo all\n"
    )
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    return names


@pytest.mark.parametrize("verb", ["run", "sweep"])
@pytest.mark.parametrize("nodes", ["@all", "@x'$(touch owned)'", "a,@all", "a*"])
def test_a_group_in_a_job_file_is_refused_before_anybody_is_asked(
    asked: Path, tmp_path: Path, nodes: str, verb: str
) -> None:
    job = tmp_path / "job.toml"
    job.write_text(f'target = ["{nodes}:/data/file"]\nrw = "randread"\n')
    done = lunscope("fleet", verb, str(job), "--hosts", "a", "--headless", "--ssh", "false")
    assert done.stderr.startswith(f"lunscope: {job}: target: ")
    assert "a job file names hosts, no groups and no wildcards: write node[1-20],db3\n" in done.stderr
    assert (done.returncode, done.stderr.count("\n"), asked.exists()) == (2, 1, False)


def test_a_group_in_an_option_is_asked_for_by_its_name_alone(asked: Path) -> None:
    words = ("fleet", "run", "--hosts", "a", "--headless", "--ssh", "false", "--target")
    done = lunscope(*words, "@all:/data/file")
    assert (done.returncode, done.stderr) == (2, "lunscope: --target: db1 is not one of --hosts\n")
    assert asked.read_text() == "all\n"
    done = lunscope(*words, "@all'$(touch owned)':/data/file")
    assert "is no name of a group" in done.stderr
    assert asked.read_text() == "all\n"
