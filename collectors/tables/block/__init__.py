"""Disks, their paths and the HBA ports that carry these."""
