"""The probe helper: a small privileged process that serves its counters to unprivileged readers."""
