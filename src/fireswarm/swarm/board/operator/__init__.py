"""What an operator does to a task: cancel, retry, answer, approve."""
