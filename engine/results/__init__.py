"""What a run measured: figures that add up, and how they are told to people and programs."""
