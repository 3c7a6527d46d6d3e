"""Answer formats for models that cannot call tools."""
