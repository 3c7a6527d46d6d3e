"""The one document store adapter, over Google's AsyncClient."""
