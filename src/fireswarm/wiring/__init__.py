"""The composition root: chooses the adapters and builds the objects that use them."""
