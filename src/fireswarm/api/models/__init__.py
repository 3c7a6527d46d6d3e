"""Request and response bodies of the HTTP API: public and versioned, apart from what is stored."""
