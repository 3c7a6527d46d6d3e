"""Transactions and their locks."""
