"""What the dashboard's pages do, without drawing: setups, estimates, runs in the background, and what they tell."""
