"""The run of a model that decides by calling tools."""
