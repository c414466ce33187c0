"""What processes do on each device."""
