"""What a run measured: figures that add up, and how they are shown to people and programs."""
