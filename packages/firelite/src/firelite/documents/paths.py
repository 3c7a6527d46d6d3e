"""Resource names and field paths: parsing, checking and quoting. No I/O.

A document is named ``projects/P/databases/D/documents/collection/id[/collection/id…]``. The part up to ``documents``
is its *root*: one data file can hold several, as Google's emulator does.
"""

from __future__ import annotations

import re
from functools import lru_cache

from firelite.documents.values import PATH_END, is_numeric_id, path_key
from firelite.errors import InvalidArgument

type FieldPath = tuple[str, ...]

NAME: FieldPath = ("__name__",)

# https://firebase.google.com/docs/firestore/quotas#collections_documents_and_fields
NAME_MAX_BYTES = 6 * 1024
SEGMENT_MAX_BYTES = 1500
FIELD_PATH_MAX_BYTES = 1500
SUBCOLLECTION_MAX_DEPTH = 100

_ROOT_SEGMENTS = 5
_SIMPLE_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")
_RESERVED = re.compile(r"__.+__", re.DOTALL)
_QUOTED = re.compile(r"`((?:[^`\\]|\\.)*)`", re.DOTALL)


@lru_cache(maxsize=16_384)
def check_document_name(name: str) -> str:
    """Return the name if it is a valid document name. Raises InvalidArgument with the reason if not."""
    segments = _relative(name, "Document name")
    if not segments or len(segments) % 2:
        raise InvalidArgument(f"Document name {name!r} must have an even number of segments after 'documents'.")
    if len(name.encode()) > NAME_MAX_BYTES:
        raise InvalidArgument(f"Document name {name[:80]!r}… is longer than {NAME_MAX_BYTES} bytes.")
    if len(segments) > 2 * SUBCOLLECTION_MAX_DEPTH:
        raise InvalidArgument(f"Document name {name[:80]!r}… nests deeper than {SUBCOLLECTION_MAX_DEPTH} collections.")
    for segment in segments:
        check_segment(segment, name)
    return name


def check_segment(segment: str, name: str) -> None:
    """Raise InvalidArgument if ``segment`` cannot be the id of a collection or document."""
    if segment in ("", ".", ".."):
        raise InvalidArgument(f"Resource id {segment!r} in {name!r} is not allowed.")
    if len(segment.encode()) > SEGMENT_MAX_BYTES:
        raise InvalidArgument(f"Resource id {segment[:40]!r}… is longer than {SEGMENT_MAX_BYTES} bytes.")
    if segment.startswith("__") and is_reserved(segment) and not is_numeric_id(segment):
        raise InvalidArgument(f"Resource id {segment!r} in {name!r} is reserved.")


@lru_cache(maxsize=4096)
def check_parent(parent: str) -> str:
    """Return the parent (the root or a document) of a query or a listing. Raises InvalidArgument if it is neither."""
    if len(_relative(parent, "Parent")) % 2:
        raise InvalidArgument(f"Parent {parent!r} must be the database's root or a document.")
    return parent


def root_of(name: str) -> str:
    """Return the root of a resource name: its first five segments."""
    return "/".join(name.split("/", _ROOT_SEGMENTS)[:_ROOT_SEGMENTS])


def collection_of(name: str) -> str:
    """Return the path of a document's collection."""
    return name.rpartition("/")[0]


def parent_of(collection: str) -> str:
    """Return the document (or root) that contains a collection."""
    return collection.rpartition("/")[0]


def last_segment(path: str) -> str:
    """Return the id at the end of a path."""
    return path.rpartition("/")[2]


def name_key(name: str) -> bytes:
    """Return the sort key of a document name within its root. No key is a prefix of another."""
    return subtree_key(name) + PATH_END


def subtree_key(name: str) -> bytes:
    """Return the common prefix of the keys of a document and of everything below it (empty for a root)."""
    relative = name.split("/", _ROOT_SEGMENTS)
    return path_key(relative[_ROOT_SEGMENTS]) if len(relative) > _ROOT_SEGMENTS else b""


def _relative(name: str, what: str) -> list[str]:
    """Return the segments of a resource name after its root. Raises InvalidArgument for another form."""
    parts = name.split("/")
    if (
        len(parts) < _ROOT_SEGMENTS
        or parts[0] != "projects"
        or parts[2] != "databases"
        or parts[4] != "documents"
        or not (parts[1] and parts[3])
    ):
        raise InvalidArgument(
            f"{what} {name!r} is not of the form projects/{{project}}/databases/{{database}}/documents/…"
        )
    return parts[_ROOT_SEGMENTS:]


@lru_cache(maxsize=16_384)
def parse_field_path(text: str) -> FieldPath:
    """Split ``a.`b c`.d`` into its names. Raises InvalidArgument for a path that production rejects."""
    names: list[str] = []
    rest = text
    while True:
        quoted = _QUOTED.match(rest)
        if quoted is not None:
            names.append(re.sub(r"\\(.)", r"\1", quoted[1], flags=re.DOTALL))
            rest = rest[quoted.end() :]
        else:
            simple = _SIMPLE_NAME.match(rest)
            if simple is None:
                raise InvalidArgument(f"Invalid field path {text!r}: quote names that are not simple with backticks.")
            names.append(simple[0])
            rest = rest[simple.end() :]
        if not rest:
            break
        if not rest.startswith("."):
            raise InvalidArgument(f"Invalid field path {text!r}: names are separated by dots.")
        rest = rest[1:]
    if any(not name for name in names) or len(text.encode()) > FIELD_PATH_MAX_BYTES:
        raise InvalidArgument(f"Invalid field path {text[:80]!r}: a name is empty or the path too long.")
    if any(name.startswith("__") and is_reserved(name) for name in names) and names != ["__name__"]:
        raise InvalidArgument(f"Invalid field path {text[:80]!r}: names of the form __…__ are reserved.")
    return tuple(names)


def format_field_path(path: FieldPath) -> str:
    """Format a field path; the inverse of ``parse_field_path``."""
    return ".".join(
        name if _SIMPLE_NAME.fullmatch(name) else "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"
        for name in path
    )


def is_reserved(name: str) -> bool:
    """Return True if a field name has the form ``__…__``, which Firestore reserves."""
    return _RESERVED.fullmatch(name) is not None
