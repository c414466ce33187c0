"""Device topology: HBA ports, target ports, paths, LUNs, the devices stacked on them, and mounts."""
