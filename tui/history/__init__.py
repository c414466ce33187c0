"""The history of every row for charts, and the thread that fills it."""
