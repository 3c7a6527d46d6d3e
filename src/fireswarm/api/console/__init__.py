"""The console: pages for a browser on which people watch a swarm and act on its tasks. It uses the client only."""
