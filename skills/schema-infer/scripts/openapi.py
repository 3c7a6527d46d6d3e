"""Read an OpenAPI document (2.0, 3.0 or 3.1, YAML or JSON) into a schema, with the source lines of each field."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

from jsonschema.validators import validator_for
from openapi_spec_validator.schemas import schema_v2, schema_v30, schema_v31
from referencing.jsonschema import EMPTY_REGISTRY

from fireswarm import pipelines, truncate

from .bundle import Bundle, Dangling, Place
from .operation_reader import ADDRESS, MAX_ABOUT_CHARS, OperationReader, server_url
from .reading import Reading, Unreadable, unique_key
from .security import Schemes

MAX_CHECKED_CHARS = 1_000_000
"""Larger documents are not compared with the form of OpenAPI: it would take too long."""

MAX_FAULTS = 20
MAX_FAULT_CHARS = 200
FORMS: dict[str, Any] = {"2.0": schema_v2, "3.0": schema_v30, "3.1": schema_v31}
"""JSON Schemas of OpenAPI itself, by its version."""


def read(files: Mapping[str, str], main: str, name: str) -> Reading:
    """Return the API that the document *main* describes; *files* are all texts of the bundle. Raises Unreadable."""
    bundle = Bundle(files, main)
    if not isinstance(bundle.root.at("paths").value, dict):
        raise Unreadable(f"{main} has no paths")
    return _Reader(bundle, name).read()


class _Reader:
    def __init__(self, bundle: Bundle, name: str) -> None:
        self.bundle = bundle
        self.root = bundle.root
        info = self.root.at("info")
        self.reading = Reading("TYPE2", name, info.text("title"), truncate(info.text("description"), MAX_ABOUT_CHARS))
        self.schemes = Schemes(bundle, self.reading)
        self.functions: set[str] = set()

    def read(self) -> Reading:
        self._base_url()
        for path, item in self.root.pairs("paths"):
            if not path.startswith("x-"):
                self._item(path, item)
        for name, document in self.bundle.documents:
            for key, spot in document.twice:
                self._miss(
                    "document", f"{name} {key}", f"{name}:{spot.line}", "the key stands twice; the last one holds"
                )
        if self.root.pairs("webhooks"):
            at = self.bundle.position(self.root.value, "webhooks")
            self._miss("document", "webhooks", at, "the API calls these addresses; a node does not")
        self._check_form()
        if not self.reading.operations:
            listed = "; ".join(each.reason for each in self.reading.unread[:3])
            raise Unreadable(f"{self.bundle.main.source.name} describes no operations{f': {listed}' if listed else ''}")
        return self.reading

    def _miss(self, part: Any, name: str, position: str, reason: str) -> None:
        self.reading.unread.append(pipelines.Unread(name=name, reason=reason, position=position, part=part))

    def _check_form(self) -> None:
        """List where the main document breaks the rules of OpenAPI: what is there may mean something else."""
        source, document = self.bundle.main.source, self.root.value
        version = str(document.get("openapi") or document.get("swagger") or "")[:3]
        if len(source.text) > MAX_CHECKED_CHARS or version not in FORMS:
            return
        try:
            form = dict(FORMS[version])
            validator = validator_for(form)(form, registry=EMPTY_REGISTRY)  # nothing is fetched
            faults = list(islice(validator.iter_errors(document), MAX_FAULTS))
        except RecursionError:
            return
        for fault in faults:
            path = [str(each) if isinstance(each, str) else int(each) for each in fault.absolute_path]
            container, key, value = None, None, document
            for key in path:
                container, value = value, value[key]
            told = truncate(fault.message, MAX_FAULT_CHARS) if fault.message[:1] not in "{[" else "it fits no form"
            position = self.bundle.position(container, key)
            name = "/".join(map(str, path)) or source.name
            self._miss("document", name, position, f"OpenAPI {version} has another form: {told}")

    def _base_url(self) -> None:
        servers = self.root.entries("servers")
        if servers:
            self.reading.base_url = server_url(servers[0])
            evidence = self.bundle.evidence(servers[0].value, "url")
        elif self.root.text("host") or self.root.text("basePath"):
            schemes = [each.value for each in self.root.entries("schemes")]
            scheme = "https" if "https" in schemes or not schemes else str(schemes[0])
            host = self.root.text("host")
            address = f"{scheme}://{host}" if host else ""
            url = f"{address}{self.root.text('basePath')}".rstrip("/")
            self.reading.base_url = url if ADDRESS.fullmatch(url) else ""
            evidence = self.bundle.evidence(self.root.value, "host" if host else "basePath")
        else:
            return
        told = servers[0].text("url") if servers else self.root.text("host")
        if told.strip("/") and not self.reading.base_url and evidence is not None:
            position = f"{evidence.file}:{evidence.line_start}"
            self._miss("document", "server", position, "it is no address: the node asks for one")
        if self.reading.base_url and evidence is not None:
            self.reading.know("base_url", evidence)

    def _item(self, path: str, item: Place) -> None:
        at = self.bundle.position(self.root.at("paths").value, path)
        items = [item]
        if isinstance(item.at("$ref").value, str):
            try:
                items.append(self.bundle.follow(item))
            except Dangling as error:
                self._miss("document", path, at, str(error))
        merged: dict[str, Place] = {}
        for each in items:
            for key in each.value if isinstance(each.value, dict) else ():
                merged[str(key).lower() if str(key).lower() in pipelines.VERBS else str(key)] = each
        for verb in pipelines.VERBS:
            if verb in merged:
                owner = merged[verb]
                self._operation(path, verb, owner)
        if not isinstance(item.value, dict):
            self._miss("document", path, at, "it is no object")

    def _operation(self, path: str, verb: str, owner: Place) -> None:
        place = owner.at(verb)
        at = self.bundle.position(owner.value, verb)
        title = f"{verb.upper()} {path}"
        if not isinstance(place.value, dict):
            self._miss("operation", title, at, "it is no object")
        elif not path.startswith("/"):
            self._miss("operation", title, at, "its path does not begin with a slash")
        elif len(self.reading.operations) >= pipelines.MAX_OPERATIONS:
            self._miss("operation", title, at, f"a node has at most {pipelines.MAX_OPERATIONS:,} operations")
        else:
            key = self.key_of(place, path, verb)
            OperationReader(self.bundle, self.reading, self.schemes, key, path, verb, owner).read()

    def key_of(self, place: Place, path: str, verb: str) -> str:
        """Return a key that no other operation has; the id of the document is kept beside it."""
        tags = [each.value for each in place.entries("tags") if isinstance(each.value, str)]
        literal = next((part for part in path.split("/") if part and not part.startswith("{")), "api")
        resource = _identifier(tags[0] if tags else literal, literal)
        action = _identifier(place.text("operationId"), f"{verb} {path}")
        return unique_key(resource, action, self.functions)


def _identifier(text: str, otherwise: str) -> str:
    """Return a name made of *text*; of *otherwise* if most of it are letters that no name may have."""
    letters = [letter for letter in text if letter.isalnum()]
    if sum(letter.isascii() for letter in letters) * 2 <= len(letters):
        return pipelines.identifier(otherwise)
    return pipelines.identifier(text)
