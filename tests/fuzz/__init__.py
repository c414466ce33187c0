"""Fuzzing: hostile input until the time is over; `make fuzz SECONDS=60 SEED=1`, a short run in `make test`.

Every module here with a function `run(seed, count, seconds) -> int` is a fuzzer. It tries up to `count` inputs within
about `seconds`, returns how many, and raises AssertionError, which names the saved input, at the first that fails. The
same seed gives the same inputs. With LEAST it has `run(seed, count, seconds, least)`, which goes on until so many were
tried. Where it needs what a machine may lack it has `refusal() -> str` too.

A module with `attempt(data)` is given the inputs in kept/MODULE again by test_fuzz.py.
"""
