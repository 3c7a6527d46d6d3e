"""Storage: Firestore documents, conversations, memory, blobs."""
