"""Speed of the simulator. ``python -m benchmarks`` prints it; nothing here is a test."""
