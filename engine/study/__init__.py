"""What every study has in common: its trials on disk and in recordings, the runner that measures them."""
