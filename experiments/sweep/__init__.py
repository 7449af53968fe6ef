"""A scenario over many settings: a grid or a random design, each cell run once, all of them in one table."""
