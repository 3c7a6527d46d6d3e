"""The node pipeline: its schema, its steps and the code it writes."""
