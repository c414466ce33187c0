"""Sizes: how many disks a need takes."""
