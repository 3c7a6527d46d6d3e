"""What a task was given: its input files, and the words about them for a model."""
