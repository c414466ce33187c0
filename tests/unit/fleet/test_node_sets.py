"""Node sets and groups as operators type them, with a groups.conf of the test's own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from collectors.fleet.node_sets import expand, likely_meant
from engine.errors import UsageError
from tests import needs

pytestmark = [needs.cluster_shell]


@pytest.fixture
def groups(tmp_path: Path) -> Iterator[None]:
    from ClusterShell.NodeSet import set_std_group_resolver
    from ClusterShell.NodeUtils import GroupResolverConfig

    file, conf = tmp_path / "groups", tmp_path / "groups.conf"
    file.write_text("web: n[1-2]\nrack4: n[2-5]\n")
    conf.write_text(
        f"[Main]\ndefault: local\n[local]\nmap: sed -n 's/^$GROUP: //p' {file}\n"
        f"all: sed 's/.*: //' {file}\nlist: sed 's/:.*//' {file}\n"
    )
    set_std_group_resolver(GroupResolverConfig(str(conf)))
    yield
    set_std_group_resolver(None)


@pytest.mark.usefixtures("groups")
@pytest.mark.parametrize(
    ("nodes", "group", "names"),
    [
        ("@web", None, ["n1", "n2"]),
        ("", "web", ["n1", "n2"]),
        ("", "@local:web", ["n1", "n2"]),
        ("n[1-9]", "rack4", ["n2", "n3", "n4", "n5"]),
        ("@rack4!n[3-5],db1", None, ["db1", "n2"]),
        ("@*", None, ["n1", "n2", "n3", "n4", "n5"]),
    ],
)
def test_groups_are_those_of_the_configuration(nodes: str, group: str | None, names: list[str]) -> None:
    assert sorted(expand(nodes, group)) == names


@pytest.mark.usefixtures("groups")
@pytest.mark.parametrize(
    ("nodes", "group", "says"),
    [
        ("@wbe", None, "did you mean @web?"),
        ("", "wbe", "did you mean @web?"),
        ("", "zzzzzz", "the groups are @rack4, @web"),
        ("@other:web", None, "no source 'other'"),
        ("n9", "web", "none of them is in group web"),
    ],
)
def test_an_unknown_group_is_named_with_those_there_are(nodes: str, group: str | None, says: str) -> None:
    with pytest.raises(UsageError, match=says.replace("?", r"\?")) as refused:
        expand(nodes, group)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("nodes", "meant"),
    [
        ("n[1-3", "n[1-3]"),
        ("n1]", "n1"),
        ("n[2-1]", "n[1-2]"),
        ("n[1,]", "n[1]"),
        ("n1,,n2", "n1,n2"),
        ("n1 n2", "n1,n2"),
        ("n1; n2", "n1,n2"),
        ("n{1..3}", "n[1-3]"),
        ("n[1..3]", "n[1-3]"),
        ("n[a-b]", "node[1-20],db3 or @group"),
    ],
)
def test_a_slip_is_named_with_the_fix(nodes: str, meant: str) -> None:
    with pytest.raises(UsageError, match="--hosts: ") as refused:
        expand(nodes, None)
    assert str(refused.value).endswith(f"write {meant}")
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("nodes", ["node[1-20],db3", "n[001-010/2]", "@web&@rack4", "user@host", "a[1-2]-b[3-4]"])
def test_what_is_right_stays_as_it_is(nodes: str) -> None:
    assert likely_meant(nodes) == nodes
