"""Derivation of the figures of disks, paths and HBA ports from samples."""
