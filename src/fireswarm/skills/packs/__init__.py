"""Find, parse, cache and list skill folders."""
