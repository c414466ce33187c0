"""One verb per file; each has a click `command`. None imports textual before it shows a screen."""
