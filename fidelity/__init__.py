"""How near the simulator comes to measured engines: measured files read, repeated as scenarios, and compared."""
