"""Open a swarm: choose the adapters of the settings, and build the parts that use them."""
