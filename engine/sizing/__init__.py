"""How many disks a need takes, and at which queue depth: measured curves, read the other way round."""
