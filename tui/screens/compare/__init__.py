"""The Compare screen: parts of recordings, what is computed beside it, rows, curves."""
