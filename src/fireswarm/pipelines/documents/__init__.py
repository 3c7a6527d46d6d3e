"""Documents of an API: load them within limits, and count what they describe, apart from their readers."""
