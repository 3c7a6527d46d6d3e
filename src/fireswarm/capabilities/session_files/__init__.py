"""The capability `session_file_system`: files shared by the agents of a session."""
