"""`python -m tests.fuzz.stacks PLAN...`: try plans, given as text or as files, or drawn: `--seed 1 --count 500`."""

from __future__ import annotations

import argparse
import sys
from itertools import chain
from pathlib import Path

from engine.replacing import replace
from tests.fuzz.stacks import has_maps, refusal
from tests.fuzz.stacks.drawing import draw_plan
from tests.fuzz.stacks.plan import in_words, parse_plan, plan_text
from tests.fuzz.stacks.workplace import workplace


def main() -> int:
    """Try what was asked for; the exit code is 1 if anything was wrong."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.stacks")
    parser.add_argument("plans", nargs="*", help="plans, or files with one")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=0, help="how many drawn plans")
    parser.add_argument("--guard-only", action="store_true", help="start no lunscope, which takes a minute in guests")
    options = parser.parse_args()
    if why := refusal():
        sys.stderr.write(f"{why}\n")
        return 2
    given = [parse_plan(plan if plan.startswith("{") else Path(plan).read_bytes()) for plan in options.plans]
    drawn = (draw_plan(options.seed, index, mapped=has_maps()) for index in range(options.count))
    failed = 0
    with workplace() as place:
        for plan in chain(given, drawn):
            outcome = place.try_plan(replace(plan, command=False) if options.guard_only else plan)
            failed += bool(outcome.wrong)
            said = f"WRONG: {outcome.wrong}" if outcome.wrong else f"right: {outcome.refusal or 'written'}"
            sys.stdout.write(f"{in_words(plan)}\n    {plan_text(plan)}\n    {said}\n")
            sys.stdout.flush()
    sys.stdout.write(f"{len(given) + options.count} plans, {failed} wrong\n")
    return int(failed > 0)


sys.exit(main())
