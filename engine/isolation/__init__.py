"""How far a load is disturbed by another one on the same device, without and with limits on the other."""
