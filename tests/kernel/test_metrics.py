"""`lunscope metrics` as a process: a real device, real sockets, and a real Prometheus that scrapes it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests import needs
from tests.kernel.forked_command import Forked

PATIENCE_S = 60.0
BLOCK_BYTES, BLOCKS = 64 << 10, 37
MakeLoop = Callable[..., str]

# Proxies of the environment are not for loopback.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@contextmanager
def running(*arguments: str | Path) -> Iterator[subprocess.Popen[str]]:
    process = Forked("metrics", *arguments, stderr=subprocess.PIPE)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_for(done: Callable[[], Any], process: subprocess.Popen[str]) -> Any:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        found = done()
        if found:
            return found
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.05)
    raise AssertionError("did not happen in time")


def first_line(process: subprocess.Popen[str]) -> str:
    """Return the first that it says but that it waits for exact time, which it does on a busy host."""
    assert process.stderr is not None
    return next((line for line in process.stderr if "attaching for exact time" not in line), "")


def terminated(process: subprocess.Popen[str]) -> int:
    process.send_signal(signal.SIGTERM)
    return process.wait(PATIENCE_S)


def fetched(url: str, accept: str = "") -> str:
    request = urllib.request.Request(url, headers={"Accept": accept} if accept else {})
    with _DIRECT.open(request, timeout=PATIENCE_S) as answer:
        text: str = answer.read().decode()
    return text


def value(text: str, name: str, device: str, more: str = "") -> float:
    start = f'{name}{{device="{device}"{more}}} '
    return next((float(line.removeprefix(start)) for line in text.splitlines() if line.startswith(start)), float("nan"))


def read_blocks(device: str) -> None:
    subprocess.run(
        ["dd", f"if={device}", "of=/dev/null", f"bs={BLOCK_BYTES}", f"count={BLOCKS}", "iflag=direct", "status=none"],
        check=True,
    )


def diskstats(device: str) -> list[int]:
    lines = (line.split() for line in Path("/proc/diskstats").read_text(encoding="ascii").splitlines())
    return next([int(field) for field in fields[3:]] for fields in lines if fields[2] == Path(device).name)


@needs.loop
@needs.prometheus_client
def test_a_scrape_has_the_counters_of_proc_diskstats(make_loop: MakeLoop) -> None:
    device = make_loop()
    name = Path(device).name
    read_blocks(device)
    with running("--listen", "127.0.0.1:0", "--interval", "3600", "--tier", "kernel") as process:
        url = first_line(process).split()[-1]
        before = fetched(url)
        read_blocks(device)
        counted, text = diskstats(device), fetched(url)
        assert value(text, "node_disk_reads_completed_total", name) == counted[0]
        assert value(text, "node_disk_read_bytes_total", name) == counted[2] * 512
        assert value(text, "node_disk_read_time_seconds_total", name) == counted[3] / 1000
        read_bytes = [value(one, "node_disk_read_bytes_total", name) for one in (before, text)]
        assert read_bytes[1] - read_bytes[0] == BLOCKS * BLOCK_BYTES
        assert "# EOF" in fetched(url, "application/openmetrics-text")
        only = fetched(f"{url}?name[]=node_disk_io_now")
        assert {line.partition("{")[0] for line in only.splitlines() if line[0] != "#"} == {"node_disk_io_now"}
        assert terminated(process) == 0


@needs.loop
@needs.tracer
@needs.prometheus_client
@pytest.mark.alone
def test_histograms_have_every_io_once(make_loop: MakeLoop) -> None:
    device = make_loop()
    name = Path(device).name
    count = "lunscope_disk_service_seconds_count"
    with running("--listen", "127.0.0.1:0", "--interval", "3600", "--tier", "exact") as process:
        url = first_line(process).split()[-1]
        read_blocks(device)
        before, counted = fetched(url), diskstats(device)
        read_blocks(device)
        text = fetched(url)
        ios = diskstats(device)[0] - counted[0]
        assert ios >= BLOCKS
        read = ',operation="read"'
        assert value(text, count, name, read) - value(before, count, name, read) == ios
        assert value(text, count.replace("count", "sum"), name, read) > 0


@needs.prometheus_client
def test_a_unix_socket_is_scraped_and_removed(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(path))
    with running("--listen", f"unix:{path}", "--tier", "kernel") as process:
        assert first_line(process) == f"lunscope: listening on unix:{path}\n"
        assert path.stat().st_mode & 0o777 == 0o660
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE_S)
            client.connect(str(path))
            client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
            answer = b"".join(iter(lambda: client.recv(1 << 16), b""))
        assert answer.startswith(b"HTTP/1.0 200 OK\r\n")
        assert b"\nlunscope_info{" in answer
        second = subprocess.run(
            [sys.executable, "-m", "tui", "metrics", "--listen", f"unix:{path}", "--tier", "kernel"],
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE_S,
        )
        assert second.returncode == 1
        assert second.stderr.startswith("lunscope: --listen unix:")
        assert second.stderr.count("\n") == 1
        assert terminated(process) == 0
    assert not path.exists()


@needs.prometheus_client
def test_an_address_that_others_reach_is_announced() -> None:
    with running("--listen", "0.0.0.0:0", "--tier", "kernel") as process:
        assert first_line(process).endswith("/metrics, which other hosts can reach\n")
        assert terminated(process) == 0


def test_the_textfile_is_replaced_until_sigterm(tmp_path: Path) -> None:
    file = tmp_path / "lunscope.prom"
    with running("--textfile", file, "--interval", "0.1", "--tier", "kernel") as process:
        seen: set[int] = set()

        def replaced() -> bool:
            with contextlib.suppress(FileNotFoundError):
                text = file.read_text()
                assert text.startswith("# Written by lunscope metrics.\n")
                assert "\nlunscope_sampling_cpu_seconds_total " in text
                seen.add(file.stat().st_mtime_ns)
            return len(seen) >= 5

        wait_for(replaced, process)
        assert terminated(process) == 0
    assert [path.name for path in tmp_path.iterdir()] == ["lunscope.prom"]


@needs.promtool
@needs.prometheus_client
def test_promtool_finds_nothing_to_improve() -> None:
    with running("--listen", "127.0.0.1:0", "--level", "all") as process:
        text = fetched(first_line(process).split()[-1])
    tool = needs.prometheus_tool("promtool")
    assert tool is not None
    done = subprocess.run([tool, "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    # It suggests other names for those of node_exporter, too; they stay as they are.
    own = [line for line in (done.stdout + done.stderr).splitlines() if not line.startswith("node_")]
    assert own == []


@needs.prometheus
@needs.prometheus_client
@needs.loop
def test_a_real_prometheus_scrapes_it(tmp_path: Path, make_loop: MakeLoop) -> None:
    device = make_loop()
    name = Path(device).name
    read_blocks(device)
    program = needs.prometheus_tool("prometheus")
    assert program is not None
    with running("--listen", "127.0.0.1:0", "--level", "all") as process:
        target = urllib.parse.urlsplit(first_line(process).split()[-1]).netloc
        jobs = [{"job_name": "lunscope", "scrape_interval": "1s", "static_configs": [{"targets": [target]}]}]
        (tmp_path / "prometheus.yml").write_text(json.dumps({"scrape_configs": jobs}))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            address = f"127.0.0.1:{free.getsockname()[1]}"
        server = subprocess.Popen(
            [
                program,
                f"--config.file={tmp_path / 'prometheus.yml'}",
                f"--storage.tsdb.path={tmp_path / 'data'}",
                f"--web.listen-address={address}",
            ],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={**os.environ, "GOMAXPROCS": "1"},
        )
        try:

            def asked(query: str) -> list[dict[str, Any]]:
                with contextlib.suppress(OSError):
                    url = f"http://{address}/api/v1/query?query={urllib.parse.quote(query)}"
                    result: list[dict[str, Any]] = json.loads(fetched(url))["data"]["result"]
                    return result
                return []

            wait_for(lambda: [one for one in asked("up") if one["value"][1] == "1"], process)
            reads = wait_for(lambda: asked(f'node_disk_reads_completed_total{{device="{name}"}}'), process)
            assert int(reads[0]["value"][1]) == diskstats(device)[0]
            assert wait_for(lambda: asked("lunscope_info"), process)
            dashboard = json.loads((Path(__file__).parents[2] / "docs/grafana-lunscope.json").read_text())
            for query in _queries(dashboard):
                url = f"http://{address}/api/v1/query?query={urllib.parse.quote(query)}"
                assert json.loads(fetched(url))["status"] == "success"
        finally:
            server.kill()
            server.wait()


def _queries(dashboard: dict[str, Any]) -> list[str]:
    """Queries of all panels, with variables as Grafana fills them in."""
    texts = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    filled = {"$__rate_interval": "1m", "$instance": ".*", "$device": ".*"}
    for variable, text in filled.items():
        texts = [one.replace(variable, text) for one in texts]
    return texts
