"""How uncertain the figures of a run are, for want of knowing what its steps take."""
