"""The terminal: reopened for the screens, written without blocking, always restored."""
