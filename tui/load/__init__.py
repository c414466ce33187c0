"""The load as operated on the screen: the job form, the knobs, the effect of a turn."""
