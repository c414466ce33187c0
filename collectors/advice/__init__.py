"""What limited a load and what to change, each with its evidence and confidence."""
