"""Frames, clocks, connects, jobs of hosts: the parts of a fleet that need no host."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.derive.percentiles import bucket_bounds_ns
from collectors.fleet.agent import LineInput
from collectors.fleet.clocks import KEPT, ClockEstimate
from collectors.fleet.connect_pace import FIRST, ConnectPace, final_words, was_dropped
from collectors.fleet.fleet_load import quiet_time_ns
from collectors.fleet.frames import MAGIC, MAX_LINE_BYTES, FrameError, decode, encode, is_frame, unpack, whole
from collectors.fleet.host_jobs import host_jobs
from collectors.fleet.host_summary import SENT_SUB_BITS, coarse
from collectors.fleet.lease import DRAIN_S, Lease, Renewals
from collectors.fleet.sample_stream import SampleReceiver, SampleSender
from collectors.model import HistogramScale
from engine.errors import UsageError
from engine.job.spec import JobSpec, TargetSpec
from tests.app.sources import make_samples
from tui.options.fleet import shared_out


def test_a_frame_comes_back() -> None:
    line = encode("lease", sent_ns=1, text="ä\n")
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert decode(line[:-1]) == {"type": "lease", "sent_ns": 1, "text": "ä\n"}


@given(st.binary(max_size=300))
def test_any_line_is_a_frame_or_an_error(line: bytes) -> None:
    for each in (line, MAGIC + line):
        try:
            frame = decode(each)
        except FrameError:
            continue
        assert is_frame(each)
        assert isinstance(frame["type"], str)


@pytest.mark.parametrize(
    "line",
    [b"Last login: today", MAGIC + b"[1]", MAGIC + b"{}", MAGIC + b"[" * 500_000, MAGIC + b" " * MAX_LINE_BYTES],
)
def test_what_is_no_frame_is_refused(line: bytes) -> None:
    with pytest.raises(FrameError):
        decode(line)


def test_wrong_fields_are_refused() -> None:
    for value in (True, 1.5, "1", None, 1 << 70):
        with pytest.raises(FrameError):
            whole({"n": value}, "n")
    for value in (None, 3, "§", "a"):
        with pytest.raises(FrameError):
            unpack(value)


def test_lines_are_cut_off_where_they_do_not_end() -> None:
    lines = LineInput(10)
    assert list(lines.feed(b"ab\r\ncd")) == [b"ab"]
    assert list(lines.feed(b"e\n")) == [b"cde"]
    with pytest.raises(FrameError):
        list(lines.feed(b"x" * 11))


def test_the_best_exchange_of_the_last_is_used() -> None:
    estimate = ClockEstimate()
    assert estimate.best is None
    estimate.add(1000, 51_010, 51_020, 1030)  # 10 each way, the other clock 50,000 ahead
    estimate.add(2000, 52_500, 52_510, 2600)
    best = estimate.best
    assert best is not None
    assert (best.offset_ns, best.bound_ns, best.round_trip_ns) == (50_000, 10, 20)
    for _ in range(KEPT):
        estimate.add(2000, 52_500, 52_510, 2600)
    assert estimate.best is not None
    assert estimate.best.round_trip_ns == 590


def test_an_exchange_that_runs_backwards_is_ignored() -> None:
    estimate = ClockEstimate()
    for times in ((2, 5, 5, 1), (1, 6, 5, 9), (1, 0, 100, 9)):
        estimate.add(*times)
    assert estimate.best is None


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.integers(-(10**12), 10**12))
def test_the_offset_is_within_its_bound(there_ns: int, back_ns: int, offset_ns: int) -> None:
    estimate = ClockEstimate()
    sent = 10**13
    estimate.add(sent, sent + there_ns + offset_ns, sent + there_ns + offset_ns, sent + there_ns + back_ns)
    assert estimate.best is not None
    assert abs(estimate.best.offset_ns - offset_ns) <= estimate.best.bound_ns + 1


def test_connects_grow_by_one_and_halve() -> None:
    pace = ConnectPace(tuple(f"n{number}" for number in range(100)))
    first = pace.begin(0.0, 100)
    assert len(first) == FIRST
    for host in first:
        pace.connected(host)
    assert pace.window in {FIRST, FIRST + 1}
    pace.begin(0.0, 100)
    window = pace.window
    pace.dropped(sorted(pace._under_way)[0], 5.0)
    assert pace.window == window // 2


def test_every_host_gets_its_turn_although_half_are_dropped() -> None:
    hosts = tuple(f"n{number}" for number in range(50))
    pace, now_s, done = ConnectPace(hosts), 0.0, set[str]()
    dropped_once: set[str] = set()
    while len(done) < len(hosts):
        now_s += 1.0
        assert now_s < 1000
        for host in pace.begin(now_s, 8):
            if host in dropped_once or int(host[1:]) % 2:
                pace.connected(host)
                done.add(host)
            else:
                dropped_once.add(host)
                pace.dropped(host, now_s + 1.0)


def test_what_an_overloaded_sshd_says_is_known() -> None:
    assert was_dropped(["kex_exchange_identification: Connection closed by remote host"])
    assert not was_dropped(["root@h1: Permission denied (publickey)."])
    of_a_gateway = ["Authorized use only", "kex_exchange_identification: read: Connection reset by peer"]
    assert was_dropped([*of_a_gateway, "Connection closed by UNKNOWN port 65535"])
    refused = ["ssh: connect to host gw1 port 22: Connection refused", *of_a_gateway]
    assert not was_dropped(refused)
    assert final_words(refused) == refused[0]


def test_renewals_are_spread_and_not_made_up_for() -> None:
    names = tuple(f"n{number}" for number in range(100))
    renewals = Renewals(names, 1.0)
    made = [renewals.due(100 + tick * 0.05) for tick in range(400)]
    assert max(map(len, made)) <= 8
    renewed = {name: [number for number, found in enumerate(made) if name in found] for name in names}
    assert all(18 <= later - earlier <= 20 for each in renewed.values() for earlier, later in pairwise(each))
    assert all(len({tick % 20 for tick in each}) > 10 for each in renewed.values())
    assert sorted(renewals.due(200.0)) == sorted(names)
    assert max(len(renewals.due(200.0 + tick * 0.05)) for tick in range(1, 40)) <= 8


def test_nothing_is_set_while_hosts_sample() -> None:
    second_ns = 1_000_000_000
    for phase_ns in range(0, second_ns, 10_000_000):
        earliest_ns = 7 * second_ns + phase_ns
        at_ns = quiet_time_ns(earliest_ns)
        assert 300_000_000 <= at_ns % second_ns < 950_000_000
        assert at_ns == earliest_ns or at_ns - earliest_ns <= 350_000_000
    assert quiet_time_ns(7_400_000_000) == 7_400_000_000


def test_gateways_have_the_same_number_of_hosts_and_none_of_their_own() -> None:
    assert shared_out(("g1", "n1", "n2", "n3", "n4"), ("g1", "g2")) == {"n1": "g1", "n2": "g2", "n3": "g1", "n4": "g2"}
    assert shared_out(("n1",), ()) == {}


def _expand(nodes: str, _source: str) -> tuple[str, ...]:
    return tuple(nodes.split(","))


def test_targets_and_permissions_are_of_the_hosts_they_name() -> None:
    job = JobSpec(targets=(TargetSpec("/dev/sda"), TargetSpec("b:/dev/sdb")))
    jobs = host_jobs(job, ("b:/dev/sdb",), ("a", "b"), _expand)
    assert [target.path for target in jobs["a"].job.targets] == ["/dev/sda"]
    assert [target.path for target in jobs["b"].job.targets] == ["/dev/sda", "/dev/sdb"]
    assert (jobs["a"].allow_write, jobs["b"].allow_write) == ((), ("/dev/sdb",))


@pytest.mark.parametrize(
    ("targets", "allowed", "says"),
    [
        (("/dev/sda",), ("/dev/sda",), "name the hosts"),
        (("/dev/sda",), ("c:/dev/sda",), "c is not one of --hosts"),
        (("a:/dev/sda",), (), "none for host b"),
    ],
)
def test_what_names_no_host_is_refused(targets: tuple[str, ...], allowed: tuple[str, ...], says: str) -> None:
    with pytest.raises(UsageError, match=says):
        host_jobs(JobSpec(targets=tuple(map(TargetSpec, targets))), allowed, ("a", "b"), _expand)


def test_samples_come_back_as_they_were() -> None:
    sender, receiver = SampleSender(0), SampleReceiver()
    for sample in make_samples(count=70):
        found = receiver.sample(decode(sender.frame(sample).rstrip(b"\n")))
        assert found.monotonic_ns == sample.monotonic_ns
        assert found.topology.devices == sample.topology.devices
        for name, table in sample.tables.items():
            assert found.tables[name].rows.keys == table.rows.keys
            assert (found.tables[name].values == table.values).all()


def test_a_lost_sample_is_an_error_and_a_new_stream_begins_anew() -> None:
    samples = make_samples(count=4)
    sender, receiver = SampleSender(0), SampleReceiver()
    lines = [sender.frame(sample) for sample in samples]
    receiver.sample(decode(lines[0].rstrip()))
    with pytest.raises(FrameError):
        receiver.sample(decode(lines[2].rstrip()))
    again = SampleSender(2)
    assert receiver.sample(decode(again.frame(samples[3]).rstrip())).monotonic_ns == samples[3].monotonic_ns


@pytest.mark.slow
@given(st.integers(0, 500), st.binary(min_size=1, max_size=8))
def test_a_damaged_sample_is_an_error(at: int, noise: bytes) -> None:
    line = SampleSender(0).frame(make_samples(count=1)[0]).rstrip()
    damaged = line[:at] + noise + line[at + len(noise) :]
    try:
        SampleReceiver().sample(decode(damaged))
    except FrameError:
        return


def test_coarse_buckets_hold_what_the_fine_ones_hold() -> None:
    fine, bucket = HistogramScale(1, 6), np.arange(3000, dtype=np.uint16)
    scale, found = coarse(fine, bucket)
    low, above = bucket_bounds_ns(fine, bucket)
    coarse_low, coarse_above = bucket_bounds_ns(scale, found.astype(np.uint16))
    assert scale.sub_bits == SENT_SUB_BITS
    assert (coarse_low <= low).all()
    assert (above <= coarse_above).all()


def test_a_lease_that_ended_does_not_hold_however_late_its_thread_runs() -> None:
    def lost(reason: str) -> None:
        raise AssertionError(reason)

    silent, heard = Lease(lost, lease_s=DRAIN_S), Lease(lost)
    assert (silent.holds, heard.holds) == (False, True)
    heard.end("")
    assert not heard.holds
