"""Facts and summaries of a session: their documents, and recall by words of any language."""

from fireswarm.storage.memory.fact_documents import MAX_KEYWORDS, fact_path, find_keywords, parse_fact, short_id
from fireswarm.storage.memory.session_memory import Memory

__all__ = ["MAX_KEYWORDS", "Memory", "fact_path", "find_keywords", "parse_fact", "short_id"]
