"""Role cards and the hooks of a role."""
