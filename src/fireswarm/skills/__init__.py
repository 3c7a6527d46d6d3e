"""Agent Skills: load, check, route, disclose and run them."""
