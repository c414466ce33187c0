"""NFS mounts: operations and transports."""
