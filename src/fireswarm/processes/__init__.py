"""Child processes: shell commands, bounded calls, bubblewrap and seccomp; process start-up."""
