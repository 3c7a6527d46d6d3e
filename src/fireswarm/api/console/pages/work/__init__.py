"""Pages of the work: tasks, their questions, runs, conversations and files."""
