"""What leans on private names of Textual and rich, by the version that tests/unit/test_textual_internals.py names."""
