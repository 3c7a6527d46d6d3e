"""Read an OpenAPI document (2.0 or 3.x, YAML or JSON) into a schema, with the source lines of each field."""

from __future__ import annotations

import re
from typing import Any, cast, get_args

import yaml

from fireswarm import pipelines

from .reading import Reading, Source, Unreadable

MAX_REFERENCES = 20
"""Maximum number of references followed in a row; a longer chain is a cycle."""

PLACES = {"path": "path", "query": "query", "header": "header", "formData": "body", "body": "body"}


def read(source: Source, name: str) -> Reading:
    """Return the API that *source* describes."""
    try:
        document: Any = yaml.safe_load(source.text)
    except (yaml.YAMLError, RecursionError) as error:
        raise Unreadable(f"{source.name} is not valid YAML or JSON: {str(error).splitlines()[0]}") from error
    if not isinstance(document, dict) or not isinstance(document.get("paths"), dict):
        raise Unreadable(f"{source.name} has no paths")
    return _Reader(source, document, name).read()


class _Reader:
    def __init__(self, source: Source, document: dict[str, Any], name: str) -> None:
        self.source = source
        self.document = document
        info = document.get("info") or {}
        self.reading = Reading("TYPE2", name, str(info.get("title") or ""), str(info.get("description") or ""))

    def read(self) -> Reading:
        self._base_url()
        self._credentials()
        for path, item in self.document["paths"].items():
            shared = self._resolved(item)
            for method in pipelines.METHODS:
                operation = shared.get(method.lower())
                if isinstance(operation, dict):
                    self._operation(str(path), method, operation, shared.get("parameters") or [])
        if not self.reading.operations:
            raise Unreadable(f"{self.source.name} describes no operations")
        return self.reading

    def _resolved(self, value: Any) -> dict[str, Any]:
        for _ in range(MAX_REFERENCES):
            if not isinstance(value, dict):
                return {}
            reference = value.get("$ref")
            if not isinstance(reference, str):
                return value
            if not reference.startswith("#/"):
                raise Unreadable(f"{reference} points outside {self.source.name}: bundle the document first")
            found: Any = self.document
            for part in reference[2:].split("/"):
                key = part.replace("~1", "/").replace("~0", "~")
                found = found.get(key) if isinstance(found, dict) else None
            value = found
        raise Unreadable(f"the references of {self.source.name} form a cycle")

    def _base_url(self) -> None:
        servers = self.document.get("servers") or []
        if servers and isinstance(servers[0], dict):
            self.reading.base_url = str(servers[0].get("url") or "").rstrip("/")
        elif self.document.get("host"):
            scheme = (self.document.get("schemes") or ["https"])[0]
            self.reading.base_url = f"{scheme}://{self.document['host']}{self.document.get('basePath') or ''}".rstrip(
                "/"
            )
        line = self.source.line_of(self.reading.base_url) or self.source.line_of(str(self.document.get("host") or "\0"))
        if self.reading.base_url and line:
            self.reading.know("base_url", self.source.evidence(line))

    def _credentials(self) -> None:
        schemes = (self.document.get("components") or {}).get("securitySchemes")
        schemes = schemes or self.document.get("securityDefinitions") or {}
        self.reading.credentials = [str(name) for name in schemes]
        line = self.source.line_of("securitySchemes") or self.source.line_of("securityDefinitions")
        if self.reading.credentials and line:
            self.reading.know("credentials", self.source.evidence(line, line + 1))

    def _operation(self, path: str, method: str, found: dict[str, Any], shared: list[Any]) -> None:
        resource = pipelines.identifier(str((found.get("tags") or [path.strip("/").split("/")[0] or "api"])[0]))
        action = pipelines.identifier(str(found.get("operationId") or f"{method} {path}"))
        key = f"{resource}.{action}"
        at = self._line(path, method)
        operation = pipelines.Operation(
            key=key,
            name=str(found.get("summary") or action.replace("_", " ").capitalize()),
            resource=resource,
            description=str(found.get("description") or found.get("summary") or ""),
            method=method,
            path=path,
        )
        self.reading.operation(operation, self.source.evidence(at))
        for item in [*shared, *(found.get("parameters") or [])]:
            self._parameter(key, self._resolved(item), at)
        body = self._resolved(found.get("requestBody"))
        for content in (body.get("content") or {}).values():
            self._body(key, self._resolved((content or {}).get("schema")), at)
            break

    def _line(self, path: str, method: str) -> int:
        """Return the line of *method* below *path*; for one-line JSON, the line of the path or the first line."""
        path_line = next(
            (
                number
                for number, line in enumerate(self.source.text.splitlines(), 1)
                if re.match(rf"""\s*["']?{re.escape(path)}["']?\s*:""", line)
            ),
            0,
        )
        return self.source.line_of(f"{method.lower()}:", path_line) or path_line or 1

    def _parameter(self, key: str, item: dict[str, Any], at: int) -> None:
        place = PLACES.get(str(item.get("in")), "")
        if place == "body" and item.get("schema"):
            self._body(key, self._resolved(item["schema"]), at)
        elif item.get("name") and place:
            schema = self._resolved(item.get("schema")) or item
            self._add(key, str(item["name"]), schema, place, bool(item.get("required")), at, item.get("description"))

    def _body(self, key: str, schema: dict[str, Any], at: int) -> None:
        required = schema.get("required") or []
        for name, item in (schema.get("properties") or {}).items():
            self._add(key, str(name), self._resolved(item), "body", name in required, at)

    def _add(
        self, key: str, name: str, schema: dict[str, Any], place: Any, required: bool, at: int, about: Any = None
    ) -> None:
        options = schema.get("enum") or []
        said = schema.get("type")
        said = next((kind for kind in said if kind != "null"), "string") if isinstance(said, list) else said
        plain: pipelines.Kind = cast(pipelines.Kind, said) if said in get_args(pipelines.Kind) else "string"
        parameter = pipelines.Parameter(
            name=name,
            display_name=name,
            kind="options" if options else plain,
            required=required or place == "path",
            default=schema.get("default"),
            description=str(about or schema.get("description") or ""),
            options=tuple(str(option) for option in options),
            operations=(key,),
            place=place,
        )
        line = self.source.line_of(f"name: {name}", at - 1) or self.source.line_of(name, at - 1)
        line = line or self.source.line_of(name)
        self.reading.parameter(parameter, self.source.evidence(line or at))
