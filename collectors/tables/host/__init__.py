"""The host: CPU, memory and pressure."""
