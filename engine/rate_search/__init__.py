"""The highest rate of an open loop that keeps limits of latency. Pure but for `runner.py`."""
