"""Storage of runs: documents for tasks of a swarm, files for the stand-alone agent."""
