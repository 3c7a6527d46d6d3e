"""Options, error output and the commands that `swarm` and `agent` share."""
