"""Records beside the task: mailbox, journal, run files, heartbeats."""
