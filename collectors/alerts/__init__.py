"""Alerts: rules on figures of frames, their state over time, and the command they run."""
