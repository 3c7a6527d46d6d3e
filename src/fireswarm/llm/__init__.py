"""Models: the providers' adapters, and what every call passes through: budget, limiter, retry, decoding, meter."""
