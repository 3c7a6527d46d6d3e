"""The stand-alone agent: run one task with a model and no store, chat, preview a request."""
