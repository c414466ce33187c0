"""What hangs on what: HBA ports, target ports, paths, LUNs, the devices stacked on them, and mounts."""
