"""Documents of facts: their paths, their fields and their versions.

People write such documents by hand: a missing bucket or key is derived, and an odd value of an optional field is left
out. Only a document without a value is no fact.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, cast

from pydantic import ValidationError

from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.limits import SHORT_ID_CHARS
from fireswarm.contracts.ports import SERVER_TIME, Merge, Snapshot
from fireswarm.contracts.skills.skill import Fact
from fireswarm.errors import InvalidInput
from fireswarm.storage.documents.paths import MEMORY, VERSIONS
from fireswarm.storage.search.words import STOP, words

FACT, SUMMARY = "fact", "session_summary"
"""Types of the documents that recall reads."""

SUMMARIES = "summaries"
"""Bucket of the session summaries."""

HAND_WRITTEN_BUCKET = "notes"
"""Bucket of a hand-written fact without one, and of facts that a role remembers."""

MAX_KEYWORDS = 30
"""Maximum number of keywords that are stored with a fact."""

MAX_BUCKET_CHARS, MAX_KEY_CHARS = 100, 255
MAX_LISTED = 40
"""Maximum length of a bucket and of a key, and maximum number of keywords and of evidence, as in ``Fact``."""

_PREFIX = "fact-"
_CONTENT = ("value", "text", "source", "evidence", "source_task_id")
"""Fields that make a version of a fact."""

_LISTS = ("keywords", "evidence")
_FALSE = frozenset({"", "false", "no", "0", "off", "none"})


def find_keywords(texts: Iterable[str], limit: int = MAX_KEYWORDS) -> list[str]:
    """Return the words of *texts* without function words, most frequent first."""
    counted = Counter(word for text in texts for word in words(text) if word not in STOP)
    return [word for word, _ in sorted(counted.items(), key=lambda item: (-item[1], item[0]))][:limit]


def fact_path(session_hash: str, bucket: str, key: str) -> str:
    """Path of a fact: one document per session, bucket and key, so a new value replaces the old one."""
    digest = hashlib.sha256(f"{session_hash}\n{bucket}\n{key}".encode()).hexdigest()
    return f"{MEMORY}/{_PREFIX}{digest[:40]}"


def short_id(fact_id: str) -> str:
    """Return the short form of a fact's id. A document with another name has no short form."""
    return fact_id.removeprefix(_PREFIX)[:SHORT_ID_CHARS] if fact_id.startswith(_PREFIX) else fact_id


def id_beginnings(fact_id: str) -> tuple[str, ...]:
    """Return the beginnings of document ids that a short or whole id may mean."""
    return (fact_id,) if fact_id.startswith(_PREFIX) else (f"{_PREFIX}{fact_id}", fact_id)


def version_of(data: Mapping[str, Any]) -> str:
    """Return the id of a fact's version: the hash of its content."""
    content = {name: data[name] for name in _CONTENT if data.get(name) not in (None, "", [], ())}
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, default=str)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:24]


def version_write(path: str, data: Mapping[str, Any]) -> Merge:
    """Return the write that keeps a version of a fact. Repeating it changes nothing."""
    names = (*_CONTENT, "session_hash", "confidence", "learned_at", "wrong", "wrong_reason")
    fields = {name: data[name] for name in names if data.get(name) is not None}
    return Merge(f"{path}/{VERSIONS}/{version_of(data)}", fields | {"created_at": SERVER_TIME})


def is_wrong(data: Mapping[str, Any]) -> bool:
    """Return True if a person marked the document as wrong, in any form: ``true``, ``1``, ``yes``, a reason."""
    mark = data.get("wrong")
    return mark.strip().lower() not in _FALSE if isinstance(mark, str) else bool(mark)


def parse_fact(snapshot: Snapshot) -> Fact:
    """Parse the document of a fact or a summary. Raises InvalidInput for one without a value."""
    data = snapshot.data or {}
    value = data.get("value") if data.get("value") is not None else data.get("text")
    if value is None:
        raise InvalidInput(f"{snapshot.path} is not a fact: value: Field required")
    fields: dict[str, Any] = {
        "value": value,
        "bucket": _text(data.get("bucket"), MAX_BUCKET_CHARS) or HAND_WRITTEN_BUCKET,
        "key": _text(data.get("key"), MAX_KEY_CHARS) or snapshot.id[:MAX_KEY_CHARS],
        "fact_id": snapshot.id,
    }
    fields |= {name: items for name in _LISTS if (items := _texts(data.get(name)))}
    for name in ("source", "replaces"):
        fields[name] = _text(data.get(name))
    for name in ("confidence", "learned_at"):
        if data.get(name) is not None:
            fields[name] = data[name]
    try:
        return Fact.model_validate(fields)
    except ValidationError as error:
        optional = {name for item in error.errors() for name in item["loc"][:1]} & {"confidence", "learned_at"}
        if not optional:
            raise InvalidInput(f"{snapshot.path} is not a fact: {explain_validation(error)}") from error
    return Fact.model_validate({name: item for name, item in fields.items() if name not in optional})


def value_text(value: Any) -> str:
    """Return a fact's value as text for people, models and the index."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True, default=str)


def read_value(text: str, like: Any) -> Any:
    """Return what a person wrote as a value of a fact: a text if the fact is one, else JSON. Raises InvalidInput."""
    if isinstance(like, str):
        return text
    try:
        return json.loads(text, parse_float=_read_number, parse_constant=_read_number)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"the value of this fact is JSON, and what you gave is not: {error}") from error


def _read_number(text: str) -> float:
    """Return a number. Raises ValueError for one that JSON does not have, or that is read as infinity."""
    if math.isfinite(number := float(text)):
        return number
    raise ValueError(f"{text[:20]} is no number")


def _text(value: Any, limit: int | None = None) -> str:
    if value is None or isinstance(value, bool | dict | list):
        return ""
    return str(value).strip()[:limit]


def _texts(value: Any) -> tuple[str, ...]:
    """Return a list of texts; a hand-written text is a list of one."""
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return tuple(text for item in items[:MAX_LISTED] if (text := _text(item)))
