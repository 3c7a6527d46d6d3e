"""Adapters of the Store and Blobs ports; only ``app`` names them."""
