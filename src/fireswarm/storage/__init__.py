"""Where data is kept: Firestore documents, conversations, memory, blobs."""
