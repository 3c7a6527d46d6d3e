"""One role process: claim, work, renew, sweep, heartbeat, drain."""
