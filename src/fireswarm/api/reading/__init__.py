"""What a read may ask for beside its content: only what has changed, no body, or to wait for a change."""
