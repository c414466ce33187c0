"""The operator's controller for the load: the job as a form, the knobs, the effect of a turn."""
