"""What goes to a model and comes back: requests, responses, decisions."""
