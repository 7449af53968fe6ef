"""How long the operations of a forward pass take in it: what calibration asks a machine."""
