"""What to drive: the job and its knobs, read from text and files, written back, and checked."""
