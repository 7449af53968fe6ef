"""Engine presets as data: the named bundle of settings that a scenario's ``engine`` stands for."""
