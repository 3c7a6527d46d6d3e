"""Inputs and results of skills, tools and capabilities."""
