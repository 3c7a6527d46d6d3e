"""Hours from a plain text file."""
