"""Security schemes of an OpenAPI document: what each operation sends to authenticate itself."""

from __future__ import annotations

import re
from collections.abc import Container

from fireswarm import pipelines

from .bundle import Bundle, Dangling, Place
from .reading import Reading

HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class Schemes:
    """The schemes of a document. The fields of the credential have their names."""

    def __init__(self, bundle: Bundle, reading: Reading) -> None:
        self._root = bundle.root
        self._reading = reading
        components = bundle.root.at("components")
        owner = components if isinstance(components.value, dict) else bundle.root
        key = "securitySchemes" if owner is components else "securityDefinitions"
        self._sent: dict[str, dict[str, str]] = {}
        self._faults: dict[str, str] = {}
        for name, place in owner.pairs(key):
            reading.credentials.append(name)
            at = bundle.position(owner.at(key).value, name)
            if (evidence := bundle.evidence(owner.at(key).value, name)) is not None:
                reading.know("credentials", evidence)
            try:
                sent, fault = _sent_by(pipelines.identifier(name), bundle.follow(place))
            except Dangling as error:
                sent, fault = {}, str(error)
            self._sent[name], self._faults[name] = sent, fault
            if fault:
                reading.unread.append(
                    pipelines.Unread(name=f"security {name}", reason=fault, position=at, part="security")
                )

    def of(self, operation: Place, title: str, at: str, taken: Container[tuple[str, ...]]) -> dict[str, str]:
        """Return what an operation sends: of several alternatives the first one that a node can send.

        What a parameter of the same place and name sends (*taken*) is left to the caller.
        """
        owner = operation if "security" in operation.value else self._root
        alternatives = [each.value for each in owner.entries("security") if isinstance(each.value, dict)]
        is_optional = {} in alternatives
        wanted = [each for each in alternatives if each]
        for each in wanted:
            if all(name in self._sent and not self._faults[name] for name in each):
                sent = {key: value for name in each for key, value in self._sent[name].items()}
                free = {key: value for key, value in sent.items() if tuple(key.split(" ", 1)) not in taken}
                return {key: _optional(value) if is_optional else value for key, value in free.items()}
        if wanted and not is_optional:
            names = sorted({str(name) for each in wanted for name in each})
            why = "; ".join(f"{name}: {self._faults.get(name, 'no such scheme')}" for name in names)
            self._reading.unread.append(
                pipelines.Unread(name=f"{title} security", reason=why, position=at, part="security")
            )
        return {}


def _optional(told: str) -> str:
    kind, _, fields = told.partition(" ")
    return f"{kind}? {fields}"


def _sent_by(field: str, scheme: Place) -> tuple[dict[str, str], str]:
    """Return what a scheme sends, by place and name; or why a node cannot send it."""
    kind, where, name = scheme.text("type"), scheme.text("in"), scheme.text("name")
    match kind, scheme.text("scheme").lower():
        case "apiKey", _ if where == "query" or (where in ("header", "cookie") and HEADER_NAME.fullmatch(name)):
            return {f"{where} {name}": f"raw {field}"}, ""
        case ("basic", _) | ("http", "basic"):
            return {"header Authorization": f"basic {field}_username {field}_password"}, ""
        case ("http", "bearer") | ("oauth2" | "openIdConnect", _):
            return {"header Authorization": f"bearer {field}"}, ""
        case "http", other:
            return {}, f"the HTTP scheme {other!r} is declared, not imitated"
        case _:
            return {}, f"the scheme {kind!r} is declared, not imitated"
