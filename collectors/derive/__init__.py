"""Derivation of figures from raw tables; the entry point is collectors.rates."""
