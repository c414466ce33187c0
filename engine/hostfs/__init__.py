"""What /proc and /sys say of block devices, mounts, swap and processes: one parser each, for guard and topology."""
