"""The shared core: clock, errors, files, requests, their content, batch plans and the decode pool."""
