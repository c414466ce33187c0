"""Samples into the figures of disks, paths and HBA ports."""
