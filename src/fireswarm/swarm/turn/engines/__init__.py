"""The engines of a turn: code, a model, or a pipeline step with advice, and the choice among them."""
