"""Line-API widgets: each draws lines from columns of numbers and repaints only changed lines."""
