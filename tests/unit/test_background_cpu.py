"""The CPU time of background threads, which is part of what the monitor says that it costs."""

import threading
import time

from collectors.sampling.reading import BACKGROUND_CPU, BackgroundThread


def test_the_cpu_time_of_a_thread_is_counted_while_it_runs_and_after_its_end() -> None:
    busy, used_ns = threading.Event(), 0

    def body(stop: threading.Event) -> None:
        nonlocal used_ns
        while time.thread_time_ns() < 5_000_000:
            pass
        used_ns = time.thread_time_ns()
        busy.set()
        stop.wait()

    before_ns = BACKGROUND_CPU.used_ns
    thread = BackgroundThread("busy", body)
    assert busy.wait(60)
    running_ns = BACKGROUND_CPU.used_ns - before_ns
    assert running_ns >= used_ns
    thread.stop(60)
    assert BACKGROUND_CPU.used_ns - before_ns >= running_ns
