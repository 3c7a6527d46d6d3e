"""Tools for the files of one folder: list, read, search, write, edit."""
