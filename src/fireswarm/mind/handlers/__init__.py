"""Execute the calls of a model: one function for each tool."""
