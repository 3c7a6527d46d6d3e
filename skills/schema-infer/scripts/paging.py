"""Read from an OpenAPI document how an operation is asked for further pages.

A document says it by an extension, by a link of an answer to the operation itself, by the header ``Link``, or by names
that agree: ``next_cursor`` in the answer, ``cursor`` in the query.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Literal, NamedTuple

from fireswarm import Evidence, count_noun, pipelines

from . import schemas
from .bundle import Bundle, Dangling, Place

WRAPPERS = frozenset({"meta", "metadata", "pagination", "paging", "pageinfo", "page", "links", "responsemetadata"})
"""Objects of an answer that hold what leads to the next page, by their folded names."""

CURSORS = frozenset({"cursor", "continuation", "continuationtoken", "marker", "pagetoken", "scrollid"})
"""Folded names that mean the next page although they do not say so, if a parameter has the same name."""

ADDRESSES = frozenset({"next", "nextlink", "nexturl", "nexturi", "nexthref", "nextpageurl", "nextpagelink"})
ADDRESS_FORMATS = ("uri", "url", "uri-reference")
_PATH = re.compile(r"\$(?:response)?\.?+([\w@-]++(?:\.[\w@-]++)*+)")
_REQUEST = re.compile(r"\$request\.([\w@.-]++)")
POINTER = "$response.body#/"
COUNTING = ("integer", "number", "any")
TAKING_CURSORS = (*COUNTING, "string", "options")
"""Kinds of parameters that take a number of a page, and what an answer has."""


class CannotFollow(ValueError):
    """The document says that there are further pages, in a way that a node cannot follow; the message says why."""


class Found(NamedTuple):
    """How further pages are asked for, and where the document says so."""

    paging: pipelines.Paging
    evidence: Evidence | None


class PagingReader:
    """Reads one operation. *names* are the inputs of its parameters by (place, name), *kinds* the kinds of these."""

    def __init__(
        self, bundle: Bundle, operation: Place, method: str, names: Mapping[tuple[str, str], str],
        kinds: Mapping[str, str],
    ) -> None:  # fmt: skip
        self._bundle, self._operation, self._method, self._names, self._kinds = bundle, operation, method, names, kinds
        self._answers = list(self._successes())

    def read(self) -> Found | None:
        """Return how further pages are asked for, or None if nothing says that there are any. Raises CannotFollow."""
        for read in (self._by_extension, self._by_link, self._by_header, self._by_names):
            if (found := read()) is not None:
                return found
        return None

    def _successes(self) -> Iterator[Place]:
        for code, answer in self._operation.pairs("responses"):
            if code.startswith("2") or code == "default":
                with contextlib.suppress(Dangling):
                    yield self._bundle.follow(answer)

    def _input(self, name: str, kinds: Collection[str] = TAKING_CURSORS) -> str:
        """Return the input of a parameter that is in no path. Raises CannotFollow if there is none of these kinds."""
        where, _, bare = name.rpartition(".")
        for place in (where,) if where in ("query", "header", "cookie") else ("query", "body", "header"):
            if (given := self._names.get((place, bare if where == place else name))) is not None:
                if self._kinds.get(given) not in kinds:
                    raise CannotFollow(f"its parameter {name} takes no such value")
                return given
        raise CannotFollow(f"it has no parameter {name}")

    def _is_in_path(self, name: str) -> bool:
        return name.startswith("path.") or ("path", name) in self._names

    # ── extensions ──────────────────────────────────────────────────────────────────────────────────────

    def _by_extension(self) -> Found | None:
        readers = dict(
            zip(pipelines.PAGING_EXTENSIONS, (self._of_azure, self._of_speakeasy, self._of_fern), strict=True)
        )
        for name, read in readers.items():
            told = self._operation.at(name)
            is_one_page = isinstance(told.value, dict) and told.value.get("nextLinkName", "") is None
            if told.value and not is_one_page:
                place = self._bundle.root.at(name) if told.value is True else told  # of Fern: said once for all
                return Found(read(place), self._bundle.evidence(self._operation.value, name))
        return None

    def _of_azure(self, told: Place) -> pipelines.Paging:
        if not told.text("nextLinkName"):
            raise CannotFollow("it names no next link")
        return pipelines.Paging(
            kind="address", cursor=told.text("nextLinkName"), items=told.text("itemName") or "value"
        )

    def _of_speakeasy(self, told: Place) -> pipelines.Paging:
        inputs = {each.text("type"): each.text("name") for each in told.entries("inputs")}
        outputs = told.at("outputs")
        items = _path_of(outputs.text("results")) if outputs.text("results") else ""
        if outputs.text("nextUrl"):
            return pipelines.Paging(kind="address", cursor=_path_of(outputs.text("nextUrl")), items=items)
        if outputs.text("nextCursor") and "cursor" in inputs:
            cursor = _path_of(outputs.text("nextCursor"))
            return pipelines.Paging(kind="cursor", cursor=cursor, input=self._input(inputs["cursor"]), items=items)
        kinds: tuple[Literal["page", "offset"], ...] = ("page", "offset")
        for kind in kinds:
            if name := inputs.get(kind):
                return pipelines.Paging(kind=kind, input=self._input(name, COUNTING), items=items)
        raise CannotFollow("it names neither a cursor, a page nor an offset")

    def _of_fern(self, told: Place) -> pipelines.Paging:
        items = _path_of(told.text("results")) if told.text("results") else ""
        if address := told.text("next_uri") or told.text("next_path"):
            return pipelines.Paging(kind="address", cursor=_path_of(address), items=items)
        if told.text("next_cursor"):
            given, cursor = self._input(_requested(told.text("cursor"))), _path_of(told.text("next_cursor"))
            return pipelines.Paging(kind="cursor", cursor=cursor, input=given, items=items)
        if told.text("offset"):
            name = _requested(told.text("offset"))
            kind: Literal["page", "offset"] = "page" if "page" in _fold(name) else "offset"
            return pipelines.Paging(kind=kind, input=self._input(name, COUNTING), items=items)
        raise CannotFollow("it names neither a cursor, a page nor an offset")

    # ── links, headers, names ───────────────────────────────────────────────────────────────────────────

    def _by_link(self) -> Found | None:
        own = self._operation.text("operationId")
        for answer in self._answers:
            for name, each in answer.pairs("links"):
                try:
                    link = self._bundle.follow(each)
                except Dangling:
                    continue
                if not own or link.text("operationId") != own:
                    continue
                taken = {key: at for key, value in link.pairs("parameters") if (at := _pointed(value.value))}
                taken = {key: at for key, at in taken.items() if not self._is_in_path(key)}
                if len(taken) > 1:
                    raise CannotFollow(f"its link {name} takes {count_noun(len(taken), 'value')} of the answer")
                for key, at in taken.items():
                    cursor = at.replace("/", ".").replace("~1", "/").replace("~0", "~")
                    paging = pipelines.Paging(kind="cursor", cursor=cursor, input=self._input(key))
                    return Found(paging, self._bundle.evidence(answer.at("links").value, name))
        return None

    def _by_header(self) -> Found | None:
        for answer in self._answers:
            for name, _ in answer.pairs("headers"):
                if name.lower() == "link" and self._method == "get":
                    headers = answer.at("headers").value
                    return Found(pipelines.Paging(kind="link"), self._bundle.evidence(headers, name))
        return None

    def _by_names(self) -> Found | None:
        if self._method != "get":
            return None
        queries = {
            _fold(name): given
            for (place, name), given in self._names.items()
            if place == "query" and self._kinds.get(given) in TAKING_CURSORS
        }
        for dotted, container, name in self._names_of_answer():
            folded, told = _fold(name), container[name]
            if isinstance(told, dict) and told.get("type") == "boolean":
                continue  # it says whether there is a next page
            stem = folded.removeprefix("next") if folded.startswith("next") else ""
            if given := queries.get(stem) or (queries.get(folded) if stem or folded in CURSORS else None):
                paging = pipelines.Paging(kind="cursor", cursor=dotted, input=given)
                return Found(paging, self._bundle.evidence(container, name))
            if folded in ADDRESSES and isinstance(told, dict) and told.get("format") in ADDRESS_FORMATS:
                return Found(pipelines.Paging(kind="address", cursor=dotted), self._bundle.evidence(container, name))
        return None

    def _names_of_answer(self) -> Iterator[tuple[str, Any, str]]:
        """Yield the names at the top of the answer and in its wrappers: dotted path, container and name."""
        answer = self._answers[0] if self._answers else Place(None, None)
        media = [each for kind, each in answer.pairs("content") if "json" in kind or kind == "*/*"]
        schema = media[0].at("schema") if media else answer.at("schema")
        top = schemas.properties_of(self._bundle, schema)
        yield from ((name, container, name) for name, container in _containers(top))
        for name, each in top.found.items():
            if _fold(name) in WRAPPERS:
                inner = schemas.properties_of(self._bundle, each.schema)
                yield from ((f"{name}.{key}", container, key) for key, container in _containers(inner))


def _containers(properties: schemas.Properties) -> Iterator[tuple[str, Any]]:
    yield from ((name, each.container) for name, each in properties.found.items())
    yield from properties.hidden.items()


def _fold(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).lower()


def _path_of(told: str) -> str:
    """Return the dotted path of a JSONPath that has names only. Raises CannotFollow."""
    if (found := _PATH.fullmatch(told)) is None:
        raise CannotFollow(f"{told} is more than a path of names")
    return found[1]


def _requested(told: str) -> str:
    found = _REQUEST.fullmatch(told)
    return found[1] if found is not None else told


def _pointed(value: Any) -> str:
    """Return the pointer into an answer of a value of a link, or ""."""
    return value.removeprefix(POINTER) if isinstance(value, str) and value.startswith(POINTER) else ""
