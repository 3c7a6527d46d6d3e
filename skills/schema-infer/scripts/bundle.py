"""Documents of the source bundle, and what their references name: nothing is read but the bundle."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from referencing import Registry, Resource, Specification
from referencing.exceptions import NoSuchResource, Unresolvable

from fireswarm import Evidence, errors, pipelines

from .reading import Source, Unreadable

BASE = "http://source.invalid/"
"""Address below which the files of the bundle are for references. No host has such a name."""

MAX_REFERENCES = 30
"""Maximum number of references followed in a row; a longer chain is a cycle."""


MAX_REFERENCE_CHARS = 200


class Place(NamedTuple):
    """A value of a document, with what resolves the references in it."""

    value: Any
    resolver: Any

    def at(self, key: Any) -> Place:
        """Return the value of a key, or None in its place."""
        found = self.value.get(key) if isinstance(self.value, dict) else None
        return Place(found, self.resolver)

    def entries(self, key: str) -> list[Place]:
        """Return the entries of the list that a key has; [] for anything else."""
        found = self.at(key).value
        return [Place(each, self.resolver) for each in found] if isinstance(found, list) else []

    def pairs(self, key: str) -> list[tuple[str, Place]]:
        """Return names and values of the object that a key has; [] for anything else."""
        found = self.at(key).value
        pairs = found.items() if isinstance(found, dict) else ()
        return [(str(name), Place(each, self.resolver)) for name, each in pairs]

    def text(self, key: str) -> str:
        """Return the text of a key, or ""."""
        found = self.at(key).value
        return found if isinstance(found, str) else ""


class Dangling(Exception):
    """A reference leads nowhere; the message says which, and why."""


@dataclass(slots=True)
class _Loaded:
    source: Source
    document: pipelines.LoadedDocument


class Bundle:
    """The documents of a bundle, loaded when something refers to them."""

    def __init__(self, files: Mapping[str, str], main: str) -> None:
        self._files = files
        self._loaded: dict[str, _Loaded] = {}
        self._faults: dict[str, str] = {}
        self._owners: dict[int, _Loaded] = {}
        registry: Any = Registry(retrieve=self._retrieve)  # pyright: ignore[reportCallIssue]
        try:
            document = self._load(main).document
        except errors.InvalidInput as error:
            raise Unreadable(f"{main}: {error}") from error
        self.main = self._loaded[main]
        self.root = Place(document.value, registry.resolver(_uri_of(main)))

    @property
    def documents(self) -> list[tuple[str, pipelines.LoadedDocument]]:
        """The documents that were loaded so far, by name."""
        return [(name, each.document) for name, each in self._loaded.items()]

    def _load(self, name: str) -> _Loaded:
        if name not in self._loaded:
            loaded = _Loaded(Source(name, self._files[name]), pipelines.load_document(self._files[name]))
            self._loaded[name] = loaded
            self._owners |= dict.fromkeys(loaded.document.spots, loaded)
        return self._loaded[name]

    def _retrieve(self, uri: str) -> Any:
        name = unquote(uri.removeprefix(BASE)) if uri.startswith(BASE) else ""
        if name not in self._files:
            raise NoSuchResource(ref=uri)
        try:
            value = self._load(name).document.value
        except errors.InvalidInput as error:
            self._faults[uri] = str(error)
            raise NoSuchResource(ref=uri) from error
        return Resource(value, Specification.OPAQUE)

    def follow(self, place: Place) -> Place:
        """Return what a value refers to. Raises Dangling."""
        for _ in range(MAX_REFERENCES):
            reference = place.at("$ref").value
            if not isinstance(reference, str):
                return place
            place = self._look_up(reference, place.resolver)
        raise Dangling(f"{place.at('$ref').value}: the references form a cycle")

    def _look_up(self, reference: str, resolver: Any) -> Place:
        try:
            found = resolver.lookup(reference)
        except Unresolvable as error:
            file = reference.partition("#")[0]
            why = next((fault for uri, fault in self._faults.items() if file and uri.endswith(file.lstrip("./"))), "")
            why = why or ("it leads to nothing in the source folder" if file else "it leads to nothing")
            raise Dangling(f"{reference[:MAX_REFERENCE_CHARS]}: {why}") from error
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
            raise Dangling(f"{reference[:MAX_REFERENCE_CHARS]}: it is no reference") from error
        return Place(found.contents, found.resolver)

    def evidence(self, container: Any, key: Any) -> Evidence | None:
        """Return the line of a key of an object, or of an entry of a list."""
        owner = self._owners.get(id(container))
        spot = owner.document.spot(container, key) if owner is not None else None
        return owner.source.evidence(spot.line, column=spot.column) if owner is not None and spot is not None else None

    def position(self, container: Any, key: Any) -> str:
        """Return file and line of a key of an object, or of an entry of a list."""
        found = self.evidence(container, key)
        return f"{found.file}:{found.line_start}" if found is not None else self.main.source.name


def _uri_of(name: str) -> str:
    return f"{BASE}{quote(name)}"
