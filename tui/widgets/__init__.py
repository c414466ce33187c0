"""Line-API widgets: each draws whole lines from columns of numbers and repaints only lines that changed."""
