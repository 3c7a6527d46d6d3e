"""One role process: claim, serve, renew, sweep, heartbeat, drain."""
