"""The Firestore RPCs, over gRPC and in process."""
