"""The node pipeline: its schema, its steps and the generated code."""
