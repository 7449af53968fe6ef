"""What is measured, how it is defined, and how sure it is."""
