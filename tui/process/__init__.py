"""The process itself: its streams, its memory, and what is said when it crashes or hangs."""
