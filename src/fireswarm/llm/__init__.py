"""Model clients: prompt, retries, limits, budgets and the providers."""
