"""Tape drives."""
