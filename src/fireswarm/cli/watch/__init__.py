"""Follow tasks and runs on a terminal: progress, event lines, artifacts."""
