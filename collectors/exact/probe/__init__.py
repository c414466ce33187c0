"""The probe helper: a small privileged process that lets others read what it traces."""
