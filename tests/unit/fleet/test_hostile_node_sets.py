"""Node sets from strangers: no text reaches the commands of groups.conf or is expanded before it is checked."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

from collectors.fleet.node_sets import expand, expand_names
from collectors.fleet.node_terms import MOST_HOSTS, NodeSetError, terms
from engine.errors import UsageError
from tests import needs

pytestmark = [needs.cluster_shell]

_HOSTILE_NAMES = (
    "@x'$(touch {ran})'",
    "@x`touch {ran}`",
    "@x;touch {ran}",
    "@x$(touch${{IFS}}{ran})",
    "@local:x'$(touch {ran})'",
    "@@local",
    "@$(touch {ran})[1-2]",
    "n1,@x'$(touch {ran})'",
    "n[1-2]&@x|touch {ran}",
    "@-x",
)


@pytest.fixture
def ran(tmp_path: Path) -> Iterator[Path]:
    """Groups by commands, each of which makes a file; the folder in which it is."""
    from ClusterShell.NodeSet import set_std_group_resolver
    from ClusterShell.NodeUtils import GroupResolverConfig

    made = tmp_path / "ran"
    made.mkdir()
    (tmp_path / "groups.conf").write_text(
        f"[Main]\ndefault: local\n[local]\nmap: touch {made}/map; case '$GROUP' in all) echo 'n[1-2]';; "
        f"huge) echo 'n[1-99999999]';; itself) echo '@itself';; odd) echo '-oProxyCommand=x';; esac\n"
        f"all: touch {made}/all; echo n1\nlist: touch {made}/list; echo all\n"
    )
    set_std_group_resolver(GroupResolverConfig(str(tmp_path / "groups.conf")))
    yield made
    set_std_group_resolver(None)


@pytest.mark.parametrize("text", _HOSTILE_NAMES)
def test_no_name_of_a_group_is_a_command(text: str, ran: Path) -> None:
    owned = ran / "owned"
    hostile = text.format(ran=owned)
    for read in (
        partial(expand, hostile, None),
        partial(expand_names, hostile, "target"),
        partial(expand, "n1", hostile),
    ):
        with pytest.raises(UsageError):
            read()
    assert not owned.exists()
    assert not (ran / "map").exists()


@pytest.mark.parametrize("text", ["@all", "@*", "@local:all", "n*", "n1!@all", "n?"])
def test_a_job_file_names_no_groups(text: str, ran: Path) -> None:
    with pytest.raises(UsageError, match=r"^job\.toml: target: .* a job file names hosts, no groups"):
        expand_names(text, "job.toml: target")
    assert not list(ran.iterdir())
    assert expand(f"db1,{text}", None)


@pytest.mark.parametrize(
    ("text", "says"),
    [("@huge", "more than 10,000 hosts"), ("@itself", "groups of groups"), ("@odd", "does not begin with -")],
)
@pytest.mark.usefixtures("ran")
def test_what_groups_contain_is_checked_too(text: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        expand(text, None)


@pytest.mark.parametrize(
    "text",
    [
        "h[1-9999999]",
        "h[1-999999999999999999]",
        "h[1-9999999999999999999999999]",
        "h[0000001-9999999]",
        "h[1-200]x[1-200]",
        "h[1-9][1-9]x[1-9]" * 8,
        "h[1-99999999/2]",
        "h1[9-10000000]",
        "h[1-9999999999/9999999999]",
        "h[1-2]0000000000",
        "h5[1-9,10-99999]",
        "a,h[1-9999999]",
        "h[1-5]&h[1-9999999]",
        "h[1-5]!h[1-9999999]",
        "h[1-5]^h[1-9999999]",
        ",".join(f"h[1-{MOST_HOSTS - at}]" for at in range(5000)),
        "h[" + ",".join(map(str, range(5000))) + "]",
        ",".join(f"h{at}x{at * 7 % 9973}" for at in range(30_000)),
        "h" * 1_000_000,
        "h," * 500_000 + "h",
        "h[1]" * 250_000,
        "h[1-" + "1" * 1_000_000 + "]",
    ],
)
def test_a_node_set_is_counted_before_it_is_expanded(text: str) -> None:
    begun = time.process_time()
    with pytest.raises(UsageError) as refused:
        expand(text, None)
    assert time.process_time() - begun < 2.0, "it was expanded"
    assert len(str(refused.value)) < 500
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("text", [f"h[1-{MOST_HOSTS}]", "h[1-100]x[1-100]", "h[00001-20000/2]", "h9[0001-9999],h1"])
def test_what_is_within_the_limit_is_expanded(text: str) -> None:
    assert len(expand(text, None)) == MOST_HOSTS


@pytest.mark.parametrize(
    "name", ["-oProxyCommand=x", "a@-x", "-x@a", "a b", "a$x", "a%h", "h/../x", "a" * 300, "é", "a\nb"]
)
def test_what_no_host_is_called_is_refused(name: str) -> None:
    for read in (partial(expand, name, None), partial(expand_names, name, "target")):
        with pytest.raises(UsageError):
            read()


_NUMBERS = some.integers(0, 60)
_RANGES = some.lists(
    some.builds(
        lambda low, more, step, width: f"{low:0{width}}-{low + more:0{width}}" + (f"/{step}" if step > 1 else ""),
        _NUMBERS,
        some.integers(0, 30),
        some.integers(1, 3),
        some.sampled_from([1, 3]),
    )
    | _NUMBERS.map(str),
    min_size=1,
    max_size=3,
).map(",".join)
_PATTERNS = some.lists(
    some.tuples(some.sampled_from(["n", "db1", "a-0", "5", "x7"]), _RANGES), min_size=1, max_size=2
).map(lambda parts: "h" + "".join(f"{name}[{ranges}]" for name, ranges in parts))


@given(_PATTERNS, some.sampled_from(["", "9", "-ilo", "5z"]))
def test_never_more_hosts_than_were_counted(pattern: str, end: str) -> None:
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet, NodeSetException

    from collectors.fleet import node_terms

    text = pattern + end
    try:
        made = NodeSet(text, resolver=RESOLVER_NOGROUP)
    except NodeSetException:
        return
    try:
        counted = node_terms._count(text)
    except NodeSetError:
        counted = MOST_HOSTS + 1
    assert min(len(made), MOST_HOSTS + 1) <= counted


@given(
    some.lists(some.sampled_from(["a1", "a[1-5]", "b[3-9]", "a[01-12]", "c", "a10"]), min_size=1, max_size=5),
    some.data(),
)
def test_operators_mean_what_they_mean_to_clustershell(names: list[str], data: some.DataObject) -> None:
    from ClusterShell.NodeSet import RESOLVER_NOGROUP, NodeSet

    operators = data.draw(some.lists(some.sampled_from(",!&^"), min_size=len(names) - 1, max_size=len(names) - 1))
    text = names[0] + "".join(f"{operator}{name}" for operator, name in zip(operators, names[1:], strict=True))
    theirs = [str(name) for name in NodeSet(text, resolver=RESOLVER_NOGROUP)]
    if theirs:
        assert list(expand_names(text, "target")) == theirs
    else:
        with pytest.raises(UsageError, match="no host in"):
            expand_names(text, "target")


def test_parts_keep_their_brackets() -> None:
    assert [(each.operator, each.text) for each in terms("a[1,3]b, c!d[1-2]^e", groups=False)] == [
        (",", "a[1,3]b"),
        (",", "c"),
        ("!", "d[1-2]"),
        ("^", "e"),
    ]


def test_every_usual_character_may_be_in_a_name() -> None:
    names = [f"{user}{host}" for user, host in product(("", "root@", "a.b-c@"), ("db3", "n_1.example.com", "fe80::1"))]
    assert sorted(expand_names(",".join(names), "target")) == sorted(names)
