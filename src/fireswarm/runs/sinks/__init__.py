"""Where runs are kept: documents for tasks of a swarm, files for the stand-alone agent."""
