"""Records kept in addition to the task: mailbox, journal, run files, heartbeats, spending."""
