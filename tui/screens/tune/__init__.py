"""The tuning drawer: scopes at the cursor, tunables, and what a change did."""
