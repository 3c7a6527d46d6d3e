"""The pages: one module a screen. Each makes the values of a template from the swarm's client."""
