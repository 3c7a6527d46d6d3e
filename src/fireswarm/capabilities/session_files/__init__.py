"""The capability `session_file_system`: files that agents of a session share."""
