"""What every load backend offers, and the calls that wait for a device."""
