"""Run the commands of a model: their folder, what they see, how long they take, and those in the background."""
