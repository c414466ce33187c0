"""The Load screen: job, knobs, what the guard says, and the choice of targets."""
