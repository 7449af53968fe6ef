"""Data only: one YAML file per accelerator, each figure with its source."""
