"""`python -m tests.fuzz --seconds 60 --seed 1`: every fuzzer in turn; `make fuzz` runs it."""

from __future__ import annotations

import argparse
import sys

from tests.fuzz.runner import fuzzer_names, least_of, refusal_of, run_fuzzer


def main() -> int:
    """Run what was asked for; the exit code is 1 if anything was found."""
    parser = argparse.ArgumentParser(prog="make fuzz")
    parser.add_argument("--seconds", type=float, default=60.0, help="time for all fuzzers together")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, help="inputs for each fuzzer at most")
    parser.add_argument("--only", choices=fuzzer_names(), action="append", help="only this one; repeat for more")
    options = parser.parse_args()
    names = options.only or fuzzer_names()
    failed = False
    for name in names:
        if refusal := refusal_of(name):
            sys.stdout.write(f"{name:<16} left out: {refusal}\n")
            continue
        least = min(least_of(name), options.count or sys.maxsize)
        outcome = run_fuzzer(name, options.seed, options.count, options.seconds / len(names), least)
        failed = failed or bool(outcome.failure)
        said = outcome.failure or f"{outcome.tried:,} inputs, {outcome.most_bytes >> 20} MiB, nothing found"
        sys.stdout.write(f"{name:<16} {said}\n")
        sys.stdout.flush()
    return int(failed)


sys.exit(main())
