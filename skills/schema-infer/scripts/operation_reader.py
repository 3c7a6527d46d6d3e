"""Read one operation of an OpenAPI document: its parameters, its body, its server, and what authenticates it."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urljoin

from fireswarm import Evidence, pipelines, truncate

from . import paging, schemas, security
from .bundle import Bundle, Dangling, Place
from .reading import Reading

MAX_NAME_CHARS = 200
MAX_ABOUT_CHARS = 1_000
PLACES: dict[str, pipelines.Place] = {"path": "path", "query": "query", "header": "header", "cookie": "cookie"}
STYLES = {"query": "form", "cookie": "form", "path": "simple", "header": "simple"}
COLLECTIONS = {"csv": "form", "ssv": "spaceDelimited", "tsv": "tabDelimited", "pipes": "pipeDelimited"}
"""Styles that Swagger 2 calls formats of a collection."""

MEDIA = ("application/json", "*/*", "+json", "/json", "application/x-www-form-urlencoded", "multipart/form-data")
"""Media types of a body, the ones to prefer first."""

JSON, FORM, MULTIPART = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
RESERVED = re.compile(r"\$(answers|credentials|each|pages?)(\.|$)")
ADDRESS = re.compile(r"[!#-&(-;=?-~]*+")
"""Characters of an address, without spaces, quotes and angle brackets."""

MEDIA_TYPE = re.compile(r"[ -~]++")
_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")


class OperationReader:
    """Reads one operation of a path item."""

    def __init__(
        self, bundle: Bundle, reading: Reading, schemes: security.Schemes, key: str, path: str, verb: str, owner: Place
    ) -> None:
        self.bundle, self.reading, self.schemes = bundle, reading, schemes
        self.key, self.path, self.verb, self.owner = key, path, verb, owner
        self.place = owner.at(verb)
        self.title = f"{verb.upper()} {path}"
        self.at = self.bundle.position(owner.value, verb)
        self.inputs: set[str] = set()
        self.given: dict[tuple[str, str], str] = {}
        self.kinds: dict[str, str] = {}

    def read(self) -> None:
        """Add the operation and its parameters to the reading, and list what cannot be read."""
        self.media = self._media()
        self._parameters()
        self._body()
        pages = self._pages()
        name = self.place.text("summary") or self.place.text("operationId") or self.title
        operation = pipelines.Operation(
            key=self.key,
            name=truncate(" ".join(name.split()), MAX_NAME_CHARS),
            resource=self.key.partition(".")[0],
            description=truncate(self.place.text("description") or self.place.text("summary"), MAX_ABOUT_CHARS),
            method=self.verb.upper(),
            path=self.path,
            source_id=self.place.text("operationId")[:MAX_ABOUT_CHARS],
            server=self._server(),
            media_type=self.media,
            body_required=self.is_needed,
            security=self.schemes.of(self.place, self.title, self.at, self.given),
            paging=pages.paging if pages is not None else None,
        )
        paths = self.bundle.root.at("paths").value
        found = (self.bundle.evidence(paths, self.path), self.bundle.evidence(self.owner.value, self.verb))
        found += (pages.evidence,) if pages is not None else ()
        self.reading.operation(operation, *(each for each in found if each is not None))

    def _pages(self) -> paging.Found | None:
        try:
            return paging.PagingReader(self.bundle, self.place, self.verb, self.given, self.kinds).read()
        except paging.CannotFollow as error:
            self._miss("pages", "pages", f"the node returns one page: {error}")
            return None

    def _server(self) -> str:
        servers = self.place.entries("servers") or self.owner.entries("servers")
        if not servers:
            return ""
        url = urljoin(f"{self.reading.base_url}/", server_url(servers[0]))
        if url.startswith(("https://", "http://")):
            return "" if url.rstrip("/") == self.reading.base_url else url.rstrip("/")
        self._miss("document", "server", "its own server is relative, and the document names no other")
        return ""

    def _miss(self, part: Any, name: str, reason: str, position: str = "") -> None:
        listed = pipelines.Unread(name=f"{self.title} {name}", reason=reason, position=position or self.at, part=part)
        self.reading.unread.append(listed)

    # ── parameters ──────────────────────────────────────────────────────────────────────────────────────

    def _parameters(self) -> None:
        """Read the parameters of the path item, and those of the operation, which take their place."""
        found: dict[tuple[str, str], tuple[Place, str]] = {}
        for owner in (self.owner, self.place):
            for number, entry in enumerate(owner.entries("parameters")):
                at = self.bundle.position(owner.at("parameters").value, number)
                try:
                    place = self.bundle.follow(entry)
                except Dangling as error:
                    self._miss("parameter", f"parameter {number + 1}", str(error), at)
                    continue
                name, where = place.text("name"), place.text("in")
                if where in PLACES and name:
                    found[where, name] = (place, at)
                elif where not in ("body", "formData"):
                    self._miss("parameter", f"{where} {name}", "it has no name or no known place", at)
        for where, name in sorted(found, key=lambda each: list(PLACES).index(each[0])):
            self._parameter(where, name, *found[where, name])
        for name in dict.fromkeys(_PLACEHOLDER.findall(self.path)):
            if ("path", name) not in found:
                evidence = self.bundle.evidence(self.bundle.root.at("paths").value, self.path)
                self._add(name, "path", schemas.Described(kind="string"), evidence, required=True)

    def _parameter(self, where: str, name: str, place: Place, at: str) -> None:
        if where == "header" and name.lower() in pipelines.IGNORED_HEADERS:
            self._miss("parameter", f"header {name}", "OpenAPI ignores it: it belongs to media types and security", at)
            return
        fault = ""
        if len(name) > MAX_NAME_CHARS:
            fault = f"its name has more than {MAX_NAME_CHARS} characters"
        elif where in ("header", "cookie") and not security.HEADER_NAME.fullmatch(name):
            fault = f"no {where} may have such a name"
        elif where == "path" and f"{{{name}}}" not in self.path:
            fault = f"the path has no {{{name}}}"
        if fault:
            self._miss("parameter", f"{where} {name}", fault, at)
            return
        schema, style, explode = self._styled(place, where)
        described = schemas.describe(self.bundle, schema)
        described.about = place.text("description") or described.about
        evidence = self.bundle.evidence(place.value, "name")
        self._add(
            name, where, described, evidence, required=place.at("required").value is True or where == "path",
            style=style, explode=explode,
        )  # fmt: skip

    def _styled(self, place: Place, where: str) -> tuple[Place, str, bool]:
        """Return the schema of a parameter, and its style; both are empty where they are the usual ones."""
        if place.pairs("content"):
            return place.pairs("content")[0][1].at("schema"), "json", False
        usual = STYLES[where]
        if not isinstance(place.at("schema").value, dict):  # Swagger 2: the parameter is its own schema
            collection = place.text("collectionFormat")
            if place.text("type") != "array" or where in ("path", "header"):
                return place, "", where in ("query", "cookie")
            return place, COLLECTIONS.get(collection or "csv", usual), collection == "multi"
        style = place.text("style") or usual
        explode = place.at("explode").value
        explode = explode if isinstance(explode, bool) else style in ("form", "deepObject")
        return place.at("schema"), "" if (style, explode) == (usual, usual == "form") else style, explode

    def _add(
        self, name: str, where: Any, described: schemas.Described, evidence: Evidence | None, *,
        required: bool = False, style: str = "", explode: bool = False,
    ) -> None:  # fmt: skip
        given = name
        if given in self.inputs or RESERVED.match(given):
            given = f"{name.replace('$', '')}_{where}"
        while given in self.inputs:
            given += "_"
        self.inputs.add(given)
        self.given[where, name] = given
        self.kinds[given] = described.kind
        parameter = pipelines.Parameter(
            name=name,
            input="" if given == name else given,
            display_name=name,
            kind=described.kind,
            required=required,
            default=described.default,
            description=truncate(described.about, MAX_ABOUT_CHARS),
            options=described.options,
            operations=(self.key,),
            place=where,
            nullable=described.nullable,
            style=style,
            explode=explode if style else where in ("query", "cookie"),
        )
        self.reading.parameter(parameter, *((evidence,) if evidence is not None else ()))

    # ── body ────────────────────────────────────────────────────────────────────────────────────────────

    def _media(self) -> str:
        """Return the media type of the body, "" without one; note where the body is."""
        self.body: Place | None = None
        self.is_required, self.is_needed = True, False
        self.encoding: Place | None = None
        self.fields: list[tuple[Place, str]] = []
        try:
            body = self.bundle.follow(self.place.at("requestBody"))
        except Dangling as error:
            self._miss("body", "body", str(error))
            return ""
        if content := [each for each in body.pairs("content") if MEDIA_TYPE.fullmatch(each[0])]:
            kind, media = min(content, key=lambda each: _rank(each[0]))
            try:
                media = self.bundle.follow(media)
            except Dangling as error:
                self._miss("document", f"body {kind}", str(error))
            self.body, self.encoding = media.at("schema"), media.at("encoding")
            told = body.at("required").value
            self.is_required, self.is_needed = told is not False, told is True
            return kind
        if body.pairs("content"):
            self._miss("body", "body", "its media types have characters that no header may have")
            return ""
        return self._swagger_media()

    def _swagger_media(self) -> str:
        consumes = self.place.entries("consumes") or self.bundle.root.entries("consumes")
        kinds = [each.value for each in consumes if isinstance(each.value, str)]
        for owner in (self.owner, self.place):
            for number, entry in enumerate(owner.entries("parameters")):
                try:
                    place = self.bundle.follow(entry)
                except Dangling:
                    continue  # listed with the parameters
                if place.text("in") == "body":
                    told = place.at("required").value
                    self.body, self.is_required, self.is_needed = place.at("schema"), told is not False, told is True
                elif place.text("in") == "formData" and place.text("name"):
                    at = self.bundle.position(owner.at("parameters").value, number)
                    self.fields = [each for each in self.fields if each[0].text("name") != place.text("name")]
                    self.fields.append((place, at))
        if self.body is not None:
            return min(kinds, key=_rank) if kinds else JSON
        if self.fields:
            has_file = any(each.text("type") == "file" for each, _ in self.fields)
            return MULTIPART if has_file or (MULTIPART in kinds and FORM not in kinds) else FORM
        return ""

    def _body(self) -> None:
        for place, at in self.fields:
            self._field(place, at)
        if self.body is None:
            return
        kind = self.media.partition(";")[0].strip().lower()
        has_names = _rank(kind) < len(MEDIA) or kind.startswith("multipart/")
        properties = schemas.properties_of(self.bundle, self.body)
        for name, container in properties.hidden.items():
            at = self.bundle.position(container, name)
            self._miss("parameter", f"body {name}", "readOnly: only answers have it", at)
        if not has_names or not properties.is_object or not (properties.found or properties.hidden):
            self._whole(kind, has_names=has_names)
            return
        for name, each in properties.found.items():
            if len(name) > MAX_NAME_CHARS or not name:
                at = self.bundle.position(each.container, name)
                self._miss("parameter", f"body {name}", f"its name is empty or too long ({MAX_NAME_CHARS})", at)
                continue
            described = schemas.describe(self.bundle, each.schema, *each.others)
            style, explode = self._encoded(name, kind)
            evidence = self.bundle.evidence(each.container, name)
            required = each.required and self.is_required
            self._add(name, "body", described, evidence, required=required, style=style, explode=explode)

    def _field(self, place: Place, at: str) -> None:
        name = place.text("name")
        if len(name) > MAX_NAME_CHARS:
            self._miss("parameter", f"body {name}", f"its name has more than {MAX_NAME_CHARS} characters", at)
            return
        described = schemas.describe(self.bundle, place)
        style, explode = "", False
        if place.text("type") == "array" and self.media == FORM:
            collection = place.text("collectionFormat")
            style, explode = COLLECTIONS.get(collection or "csv", "form"), collection == "multi"
        evidence = self.bundle.evidence(place.value, "name")
        required = place.at("required").value is True
        self._add(name, "body", described, evidence, required=required, style=style, explode=explode)

    def _encoded(self, name: str, kind: str) -> tuple[str, bool]:
        """Return the style of a field of a form."""
        if kind != FORM or self.encoding is None:
            return ("form", True) if kind == FORM else ("", False)
        encoding = self.encoding.at(name)
        if "json" in encoding.text("contentType"):
            return "json", False
        style, explode = encoding.text("style") or "form", encoding.at("explode").value
        return style, explode if isinstance(explode, bool) else style in ("form", "deepObject")

    def _whole(self, kind: str, *, has_names: bool) -> None:
        """Add the body as one parameter."""
        assert self.body is not None
        described = schemas.describe(self.bundle, self.body)
        if not has_names:
            described = schemas.Described("binary", about=described.about)
        evidence = self.bundle.evidence(self.place.value, "requestBody")
        evidence = evidence or self.bundle.evidence(self.owner.value, self.verb)
        self._add("body", "body", described, evidence, required=self.is_needed, style="whole")


def _rank(kind: str) -> int:
    base = kind.partition(";")[0].strip().lower()
    return next((number for number, each in enumerate(MEDIA) if base == each or base.endswith(each)), len(MEDIA))


def server_url(server: Place) -> str:
    """Return the address of a server, with the defaults of its variables; "" for one that no address can be."""
    url = server.text("url")
    for name, variable in server.pairs("variables"):
        default = variable.at("default").value
        if isinstance(default, (str, int, float)) and not isinstance(default, bool):
            url = url.replace(f"{{{name}}}", str(default))
    return url.rstrip("/") if ADDRESS.fullmatch(url) else ""
