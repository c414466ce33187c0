"""Totals of a host, HBA port, LUN, path or disk since its counters were cleared; those of the kernel stay."""
