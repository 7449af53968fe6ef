"""What a plan is worth: against exhaustive search, on fresh requests, and beside another planner."""
