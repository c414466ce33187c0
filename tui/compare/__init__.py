"""Data of the Compare screen: parts, what is computed beside the screen, rows, curves; without drawing."""
