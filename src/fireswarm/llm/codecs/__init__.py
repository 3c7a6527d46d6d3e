"""Forms in which models that cannot call tools answer."""
