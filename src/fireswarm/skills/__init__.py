"""Skills: the catalog of packs, the choice among them, and their execution off the event loop."""
