"""Paths, queries and indexes of the collections; contracts to documents and back."""
