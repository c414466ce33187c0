"""The load that lunscope drives."""
