"""Run the code of a skill in a separate process."""
