"""Sheets: all that is known of one LUN, path or HBA port, as sections of titled values in words."""
