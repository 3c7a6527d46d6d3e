"""Request and response models of the HTTP API: public and versioned, separate from the stored contracts."""
