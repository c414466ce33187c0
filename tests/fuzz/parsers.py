"""Text that people and daemons write: job files of every kind, settings, values of options, replies of multipathd."""

from __future__ import annotations

import functools
import random
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from collectors.fleet.node_sets import expand_names
from collectors.fleet.node_terms import MOST_HOSTS, is_host
from collectors.kernel.identity import kernel_name, number_of, storable_name
from collectors.kernel.mapped_targets import MappedTarget
from collectors.sampling.reading_settings import load_reading_settings, plain_identity
from collectors.session.time_format import parse_when
from collectors.tables.background.mapped_works import KINDS, mapped_work
from collectors.tables.cache.bcaches import bcache_values
from collectors.tables.cache.dm_caches import cache_entry
from collectors.tables.cache.reader import table_values
from collectors.tables.cache.schema import CacheEntry
from collectors.tables.cache.zfs import read_zfs
from collectors.tables.host.reader import HostCollector
from collectors.tables.nfs.figures import operation_figures, operation_sums, transport_figures, transport_sums
from collectors.tables.nfs.reader import NfsCollector
from collectors.tables.nfs.schema import NFS_OPERATION, NFS_TRANSPORT, nfs_key
from collectors.topology.device_mapper import parse_map
from collectors.topology.multipathd import parse_paths
from collectors.topology.ports import natural
from collectors.topology.scanner import read_mounts
from engine.errors import LunscopeError
from engine.hostfs.exports import read_exports
from engine.hostfs.kernel_files import Roots
from engine.hostfs.mounts import parse_mountinfo
from engine.hostfs.rings import parse_registered
from engine.job.choices import parse_policy
from engine.job.distribution_text import format_distribution, parse_distribution
from engine.job.file import dump_job
from engine.job.formats.choose import read_job
from engine.job.formats.fio_writing import dump_fio
from engine.job.formats.read_job import ReadJob
from engine.job.scenario import dump_scenario
from engine.job.sizes import format_duration, parse_blocks, parse_duration, parse_size
from engine.job.target_text import format_target, parse_lun, parse_target
from engine.job.validate import validate
from engine.strict_json import JsonError, dump_json, load_json
from engine.text import safe_text
from engine.tune.record import from_json
from tests.fake_nfs import RDMA, UDP, FakeMount
from tests.fake_zfs import kstat_text
from tests.fuzz.campaign import assert_printable, campaign
from tests.fuzz.mutate import damaged, text_damaged
from tui.settings import load_settings

_JOBS = {
    ".toml": (
        'target = ["/dev/sdb", "lun:sdc=3,sdd!", "scratch"]\nrw = "randrw"\nread_pct = 70\nbs = "4k:60,16k:40"\n'
        'distribution = "hot:90/10"\nstripe_width = 2\nruntime = "30s"\nsize = "1g"\nqd = 16\narrival = "poisson"\n'
        "rate = 1000.5\n",
        'name = "a"\nwrite_bs = "64k"\nwrite_distribution = "zipf:1.1"\nmirror = 2\npolicy = "round-robin"\nseed = 1\n'
        'mode = "buffered"\nengine = "threads"\nfsync_every = 4\npoll = true\nverify = false\nthreads = 2\n',
    ),
    ".fio": (
        "[global]\nioengine=libaio\ndirect=1\nbs=4k,8k\niodepth=32\nruntime=30s\ntime_based\n[a]\nrw=randrw\nrwmixread=70\n"
        "filename=/dev/sdb:/dev/sdc\nsize=10g\nrandom_distribution=zoned:60/10:40/90\n[b]\nstonewall\nrw=write\n"
        "bssplit=4k/60:16k/40\nrate_iops=1000,500\nnumjobs=2\nloops=3\n",
    ),
    ".ndisk": (
        "* sample\nNBROFPROC -> 1 4 8 24 - threads\nDURATION -> 5 - seconds per step\nACCESS -> R - random\n"
        "READPROBABILITY -> 0.70\nREADLOCALITY -> (0.5 0.5) - slices\nRECSIZE -> 4096 - bytes\nPDEV -> /dev/sdb\n",
    ),
}
_SCENARIO = (
    'schema = "lunscope.scenario/1"\n[job]\nrw = "randread"\nqd = 4\nruntime = "60s"\n'
    '[[turn]]\nat = "10s"\nqd = 8\n[[turn]]\nat = "20.5s"\nread_pct = 50\nrate = "unlimited"\nbs = "8k"\n'
)
_SETTINGS = (
    'theme = "night"\nglyphs = "ascii"\nfabric_counters = true\n[keys]\nsession.pause = "p"\nview.disks = ["d", "f2"]\n'
    '[aliases]\n"36000c29abc" = "db data 1"\n"0x10000090fa000001" = "fabric A"\n'
)
_TABLE = (
    "0 2097152 multipath 1 queue_if_no_path 1 alua 2 1 service-time 0 2 2 8:16 1 1 8:32 1 1 service-time 0 1 2 8:48 1 1"
)
_STATUS = "2 0 1 0 2 1 A 0 2 2 8:16 A 0 0 1 8:32 F 3 0 1 E 0 1 2 8:48 A 0 0 1"
_MOUNTS = (
    "30 1 8:0 / / rw,relatime shared:1 - ext4 /dev/sda rw\n31 30 253:0 /a /srv\\040x rw - xfs /dev/mapper/x rw\n"
    "33 30 0:5 / /proc rw - proc proc rw"
)
_VALUES = (
    *("4k", "1.5g", "64 KiB", "4k:60,16k:40", "30s", "500ms", "zipf:1.1", "hot:90/10", "locality:50,30,20"),
    *("normal:10:30", "zones:60/10,40/90", "round-robin", "sda,sdb=3,sdc!", "lun:sda,sdb", "14:30:05", "+1h30m"),
    *("2026-05-01T14:30:05+02:00", "1763690400.5", "naa.6000c29", "10:00:00:90:fa:00:00:01", "sda:8:0#12", "host10"),
    *("randrw", "scratch", "/dev/sdb"),
)
_WORDS = (
    *(*_VALUES, "qd", "bs", "rw", "read", "write", "->", "[global]", "[[turn]]", "multipath", "A", "F", "alua"),
    *("@x", "[1-9999999]", "!", "&", "{", "}", "1e999", "9" * 50, "null", "[" * 100),
    *("true", "a = [", "a.b = {", "x = " + "[" * 3000, "x = " + "9" * 5000),
)


def run(seed: int, count: int, seconds: float) -> int:
    """Try texts of all kinds."""
    return campaign("parsers", make, attempt, seed, count, seconds)


def make(dice: random.Random) -> bytes:
    """Return the kind of a text, a zero and the text."""
    kind = dice.choice(list(_SEEDS))
    text = text_damaged(dice.choice(_SEEDS[kind]), _WORDS, dice)
    data = text.encode("utf-8", "surrogateescape")
    return kind.encode() + b"\0" + (damaged(data, dice) if dice.random() < 0.15 else data)


def attempt(data: bytes) -> None:
    """Read the text; an error is one for people."""
    kind, _, content = data.partition(b"\0")
    with suppress(LunscopeError):
        _KINDS[kind.decode()](content)


@functools.cache
def _folder() -> Path:
    # Kept for the whole run: a folder per input would take longer than its parsing.
    folder = tempfile.TemporaryDirectory(prefix="lunscope-fuzz-")
    _FOLDERS.append(folder)
    return Path(folder.name)


_FOLDERS: list[tempfile.TemporaryDirectory[str]] = []


def _written(name: str, content: bytes) -> Path:
    path = _folder() / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def _job(suffix: str) -> Callable[[bytes], None]:
    def attempt_job(content: bytes) -> None:
        _use(read_job(_written(f"job{suffix}", content)))

    return attempt_job


def _use(read: ReadJob) -> None:
    assert_printable([safe_text(warning) for warning in read.warnings])
    for scenario in (scenario for phase in read.jobs for scenario in phase):
        with suppress(LunscopeError):
            validate(scenario.job)
        with suppress(LunscopeError):
            dump_job(scenario.job)
        with suppress(LunscopeError):
            dump_scenario(scenario)
    with suppress(LunscopeError):
        dump_fio(read.scenarios)


def _settings(content: bytes) -> None:
    path = _written("config.toml", content)
    for problem in (*load_settings(path).problems, *load_reading_settings(path).problems):
        safe_text(problem)


def _value(content: bytes) -> None:
    text = content.decode("utf-8", "surrogateescape")
    for parse in _PARSERS:
        with suppress(LunscopeError):
            parse(text)


_PARSERS: tuple[Callable[[str], object], ...] = (
    parse_size,
    parse_blocks,
    parse_policy,
    parse_lun,
    lambda text: format_duration(parse_duration(text)),
    lambda text: format_distribution(parse_distribution(text)),
    lambda text: format_target(parse_target(text)),
    lambda text: parse_when(text, 0, 10**18),
    plain_identity,
    natural,
    number_of,
    lambda text: storable_name(kernel_name(text)),
)


def _multipathd(content: bytes) -> None:
    parse_paths(content.decode("utf-8", "replace"))


def _map(content: bytes) -> None:
    text = content.decode("utf-8", "replace")
    table, _, status = text.partition("\n")
    parse_map(table, status)


def _mounts(content: bytes) -> None:
    path = _written("proc/1/mountinfo", content)
    _written("proc/self/mountinfo", content)
    _written("proc/swaps", content)
    read_mounts(str(path.parents[1]), {(8, 0): "sda"}, {"sda": "sda"})
    list(parse_mountinfo(content.decode("utf-8", "surrogateescape")))


def _users(content: bytes) -> None:
    """What the guard reads of rings, and of what the kernel serves."""
    for release in ("5.15.0", "6.18.0", ""):
        parse_registered(content, release)
    _written("proc/fs/nfsd/threads", b"8\n")
    _written("root/var/lib/nfs/etab", content)
    _written("sys/kernel/config/target/core/fileio_0/disk/info", content)
    path = _written("sys/block/zram0/backing_dev", content)
    folder = path.parents[3]
    read_exports(Roots(folder / "proc", folder / "sys"), ("", str(folder / "root")))


def _caches(content: bytes) -> None:
    text = content.decode("utf-8", "replace")
    for kind in ("cache", "writecache"):
        cache_entry(MappedTarget("dm-1:254:1", "dm-1", (254, 1), kind, "s 254:1 254:2 4096 0"), text)
    for kind in KINDS:
        mapped_work(MappedTarget("dm-1:254:1", "dm-1", (254, 1), kind, text), text)
    _written("zfs/spl/kstat/zfs/arcstats", content)
    _written("zfs/spl/kstat/zfs/tank/iostats", content)
    entries = [*read_zfs(str(_folder() / "zfs"))]
    facts = dict.fromkeys(("stats_total/cache_hits", "stats_total/bypassed", "dirty_data", "cache_mode"), content)
    names = (*facts, *_BCACHE_FILES)
    mode, values = bcache_values({f"bcache/{name}": facts.get(name) for name in names})
    table_values([*entries, CacheEntry("bcache|x", mode, values)])


_BCACHE_FILES = (
    "stats_total/cache_misses",
    "stats_total/cache_bypass_hits",
    "stats_total/cache_bypass_misses",
    "stats_five_minute/cache_hit_ratio",
    "state",
    "cache/cache0/nbuckets",
    "cache/bucket_size",
)


def _nfs(content: bytes) -> None:
    for name in ("fs/nfsfs/servers", "self/mountstats", "self/mountinfo"):
        _written(f"nfs/{name}", content)
    for name in ("xprt_info", "xprt_state", "dstaddr"):
        _written(f"nfs/kernel/sunrpc/xprt-switches/switch-1/xprt-1-tcp/{name}", content)
    tables = NfsCollector(str(_folder() / "nfs"), str(_folder() / "nfs")).read().tables
    for name, table in tables.items():
        sums, figures = _NFS[name]
        figures(sums(table, table, 1.0))
        for key in table.rows.keys:
            assert len(nfs_key(key).text) == len(key)


_NFS = {
    NFS_OPERATION.name: (operation_sums, operation_figures),
    NFS_TRANSPORT.name: (transport_sums, transport_figures),
}


def _host(content: bytes) -> None:
    for name in ("meminfo", "stat", "pressure/io", "pressure/cpu", "loadavg"):
        _written(f"host/{name}", content)
    HostCollector(str(_folder() / "host")).read()


def _nodes(content: bytes) -> None:
    names = expand_names(content.decode("utf-8", "surrogateescape"), "job.toml: target")
    assert 0 < len(names) <= MOST_HOSTS
    assert all(map(is_host, names))


def _document(content: bytes) -> None:
    with suppress(JsonError):
        value = load_json(content, not_finite_is_missing=True)
        assert load_json(dump_json(value)) == value
    from_json(content.decode(errors="replace"), "1.json")


_SEEDS: dict[str, tuple[str, ...]] = {
    **_JOBS,
    "scenario": (_SCENARIO,),
    "settings": (_SETTINGS,),
    "value": _VALUES,
    "nodes": (
        "node[1-20],db3",
        "a[01-12/2]b[3-4]!a01b3&a[1-9]b3^c",
        "@rack4,n*",
        "user@10.0.0.[1-9]",
        "h9[1-99,100-120]",
    ),
    "document": (
        '{"schema": "lunscope.tune-change/1", "number": 1, "targets": [["disk", "sda", "", "", "", 1]]}',
        '{"a": [1, 2.5e300, null, true, "\\udcff"], "b": {"c": [[[{}]]]}, "d": NaN}',
    ),
    "multipathd": ("sda|normal\nsdb|marginal\n\0", ""),
    "map": (f"{_TABLE}\n{_STATUS}", f"{_STATUS}\n{_TABLE}"),
    "mounts": (_MOUNTS,),
    "nfs": (FakeMount().text + FakeMount("/v3", version="3").text, FakeMount(transports=(UDP, RDMA)).text),
    "caches": (
        "8 11/4096 128 771/2048 5766 841 2490 297 7 771 5 1 writeback 2 migration_threshold 2048 smq 0 rw -",
        "0 1000 250 10 100 40 80 5 15 20 40 3 7 2",
        kstat_text({"hits": 9, "misses": 4, "l2_size": 1, "direct_read_count": 3, "arc_read_count": 8}),
        "1.5M",
    ),
    "users": (
        "UserFiles:\t2\n    0: /dev/loop38\n    1: <none>\nUserBufs:\t0\n",
        "/srv/data\\040set\t10.0.0.0/8(rw,sync,no_subtree_check) *(ro)\n/srv\t*(rw)\n",
        "Status: ACTIVATED\n  TCM FILEIO ID: 0        File: /srv/disk  Size: 1048576  Mode: O_DSYNC\n",
    ),
    "host": (
        "cpu  1 2 3 4 5 6 7 8 9 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n",
        "MemTotal: 100 kB\nMemFree: 50 kB\nMemAvailable: 60 kB\nBuffers: 1 kB\nCached: 2 kB\nDirty: 3 kB\nSlab: 4 kB\n",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=99\n",
    ),
}
_KINDS: dict[str, Callable[[bytes], None]] = {
    **{suffix: _job(suffix) for suffix in _JOBS},
    "scenario": _job(".toml"),
    "settings": _settings,
    "value": _value,
    "nodes": _nodes,
    "document": _document,
    "multipathd": _multipathd,
    "map": _map,
    "mounts": _mounts,
    "host": _host,
    "users": _users,
    "caches": _caches,
    "nfs": _nfs,
}
