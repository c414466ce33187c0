"""The widgets of the sweep screen."""
