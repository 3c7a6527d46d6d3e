"""Shell commands of a model: working folder, confinement, time limit, background."""
