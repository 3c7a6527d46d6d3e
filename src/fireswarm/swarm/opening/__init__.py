"""Open a swarm: choose the adapters from the settings, and build the parts that use them."""
