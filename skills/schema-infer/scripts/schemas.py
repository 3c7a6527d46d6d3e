"""What a schema of OpenAPI says of one value, and the names at the top of a body."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, cast, get_args

from fireswarm import pipelines

from .bundle import Bundle, Dangling, Place

MAX_PARTS = 500
"""Schemas that one value may be put together from."""

ALTERNATIVES = ("oneOf", "anyOf")
PLAIN: dict[str, tuple[type, ...]] = {
    "string": (str,), "integer": (int,), "number": (int, float), "boolean": (bool,),
    "array": (list,), "object": (dict,), "null": (type(None),),
}  # fmt: skip


@dataclass(slots=True)
class Described:
    """A value: its kind, whether null may stand in its place, the values that it may have, and its default."""

    kind: pipelines.Kind = "any"
    nullable: bool = False
    options: tuple[Any, ...] = ()
    default: Any = None
    about: str = ""


@dataclass(slots=True)
class _Facts:
    kinds: set[str] | None = None
    options: list[Any] | None = None
    nullable: bool = False
    is_binary: bool = False
    default: Any = None
    about: str = ""
    signs: set[str] = field(default_factory=set[str])


def describe(bundle: Bundle, *schemas: Place) -> Described:
    """Return what a schema says of its value, or what several say of which one holds.

    References that lead nowhere, or in a circle, say nothing.
    """
    found = [_facts(bundle, each, [MAX_PARTS], 0) for each in schemas]
    facts = found[0]
    if len(found) > 1:
        facts = _Facts()
        _join(facts, found)
        same = all(_same(each.default, found[0].default) for each in found)
        facts.default = found[0].default if same else None
    kinds = facts.kinds if facts.kinds is not None else facts.signs
    options = facts.options
    nullable = facts.nullable or "null" in kinds or (not kinds and options is not None and None in options)
    kinds = kinds - {"null"}
    kind = "number" if kinds == {"integer", "number"} else next(iter(kinds)) if len(kinds) == 1 else "any"
    if options is not None and any(isinstance(option, (dict, list)) for option in options):
        options = None
    shown = _fitting(options, kind, nullable=nullable) if options is not None else ()
    if options and not shown:
        kind, shown = "any", tuple(options)
    if facts.is_binary and kind in ("string", "any"):
        kind = "binary"
    elif kind == "string" and shown:
        kind = "options"
    elif kind not in get_args(pipelines.Kind):
        kind = "any"
    described = Described(cast(pipelines.Kind, kind), nullable, shown, about=facts.about)
    if facts.default is not None and _is_fitting(facts.default, described):
        described.default = facts.default
    return described


def _fitting(options: list[Any], kind: str, *, nullable: bool) -> tuple[Any, ...]:
    """Return the options that the kind of a value allows; numbers of a text are written as texts."""
    if kind == "string":
        texts = [each if isinstance(each, str) else json.dumps(each) for each in options if each is not None]
        return tuple(dict.fromkeys(texts)) + ((None,) if nullable and None in options else ())
    types = PLAIN.get(kind)
    found: list[Any] = []
    for each in options:
        is_plain = types is None or (isinstance(each, types) and (kind == "boolean" or not isinstance(each, bool)))
        if (is_plain or (each is None and nullable)) and not any(each is one or _same(each, one) for one in found):
            found.append(each)
    return tuple(found) if any(each is not None for each in found) else ()


def _same(one: Any, other: Any) -> bool:
    return type(one) is type(other) and one == other


def _is_fitting(value: Any, described: Described) -> bool:
    """Return whether a default is a value that its own schema allows."""
    if described.options:
        return any(_same(value, each) for each in described.options)
    types = PLAIN.get("string" if described.kind in ("options", "binary") else described.kind)
    is_plain = types is None or (
        isinstance(value, types) and (described.kind == "boolean" or not isinstance(value, bool))
    )
    return is_plain and len(json.dumps(value, default=str)) <= MAX_DEFAULT_CHARS


MAX_DEFAULT_CHARS = 2_000


def _facts(bundle: Bundle, schema: Place, left: list[int], depth: int) -> _Facts:
    facts = _Facts()
    for part in _parts(bundle, schema, left, depth):
        value = part.value
        if "type" in value:
            told = value["type"] if isinstance(value["type"], list) else [value["type"]]
            kinds = {each for each in told if isinstance(each, str)}
            facts.is_binary |= "file" in kinds
            kinds = {"string" if each == "file" else each for each in kinds}
            facts.kinds = kinds if facts.kinds is None else (facts.kinds & kinds) or kinds
        facts.nullable |= value.get("nullable") is True or value.get("x-nullable") is True
        facts.is_binary |= value.get("format") == "binary" or "contentMediaType" in value
        if isinstance(value.get("enum"), list) and facts.options is None:
            facts.options = list(value["enum"])
        if "const" in value and facts.options is None:
            facts.options = [value["const"]]
        facts.default = value.get("default") if facts.default is None else facts.default
        facts.about = facts.about or part.text("description")
        facts.signs |= {kind for kind, sign in SIGNS if sign in value}
        if facts.options and not facts.signs:
            facts.signs = {_kind_of(each) for each in facts.options if each is not None}
        for kind in ALTERNATIVES:
            _join(facts, [_facts(bundle, each, left, depth + 1) for each in part.entries(kind)])
    return facts


SIGNS = (("object", "properties"), ("object", "additionalProperties"), ("array", "items"))
"""What a schema without a type has if it is meant for objects or lists."""


def _kind_of(value: Any) -> str:
    if isinstance(value, bool):
        return "boolean"
    return next((kind for kind, types in PLAIN.items() if isinstance(value, types)), "any")


def _join(facts: _Facts, variants: list[_Facts]) -> None:
    """Add what alternatives have: kinds of all of them, and their options if each one has some."""
    if not variants:
        return
    facts.nullable |= any(each.nullable for each in variants)
    told = [each.kinds if each.kinds is not None else each.signs for each in variants]
    if facts.kinds is None:
        facts.kinds = set[str]().union(*told) if all(told) else {"any", ""}
    facts.is_binary |= any(each.is_binary for each in variants)
    full = [each for each, kinds in zip(variants, told, strict=True) if kinds != {"null"}]
    if facts.options is None and full and all(each.options is not None for each in full):
        facts.options = [option for each in full for option in each.options or ()]
        facts.options += [None] * (len(full) < len(variants))
    facts.about = facts.about or next((each.about for each in variants if each.about), "")


def _parts(bundle: Bundle, schema: Place, left: list[int], depth: int) -> Iterator[Place]:
    """Yield a schema, what it refers to, and all that it is put together from; at most so many as are *left*."""
    stack, seen = [schema], set[int]()
    while stack and left[0] > 0 and depth < 20:
        place = stack.pop()
        left[0] -= 1
        if not isinstance(place.value, dict) or id(place.value) in seen:
            continue
        seen.add(id(place.value))
        yield place
        stack += reversed(place.entries("allOf"))
        if isinstance(place.value.get("$ref"), str):
            try:
                stack.append(bundle.follow(place))
            except Dangling:
                continue


@dataclass(slots=True)
class Property:
    """A name at the top of a body. ``container`` is the object that declares it.

    ``others`` are its schemas in further alternatives of the body.
    """

    schema: Place
    container: Any
    required: bool = False
    others: tuple[Place, ...] = ()


@dataclass(slots=True)
class Properties:
    """The names at the top of a body; ``hidden`` are those that only answers have."""

    found: dict[str, Property] = field(default_factory=dict[str, Property])
    required: set[str] = field(default_factory=set[str])
    hidden: dict[str, Any] = field(default_factory=dict[str, Any])
    is_object: bool = True


def properties_of(bundle: Bundle, schema: Place, left: list[int] | None = None, depth: int = 0) -> Properties:
    """Return the names at the top of a body. ``is_object`` is false if some alternative is no object with names.

    What alternatives require is required if all of them do.
    """
    gathered = Properties()
    left = [MAX_PARTS] if left is None else left
    for part in _parts(bundle, schema, left, depth):
        told = part.value.get("type")
        gathered.is_object &= told in (None, "object") or (isinstance(told, list) and "object" in told)
        gathered.required |= {each.value for each in part.entries("required") if isinstance(each.value, str)}
        declared = part.value.get("properties")
        for name, each in part.pairs("properties"):
            if _is_hidden(bundle, each):
                gathered.hidden.setdefault(name, declared)
            else:
                gathered.found.setdefault(name, Property(each, declared))
        for kind in ALTERNATIVES:
            _add_variants(gathered, bundle, part.entries(kind), left, depth)
    gathered.is_object &= left[0] > 0
    for name in gathered.found.keys() & gathered.hidden.keys():
        del gathered.hidden[name]
    for name, each in gathered.found.items():
        each.required = name in gathered.required
    return gathered


def _add_variants(gathered: Properties, bundle: Bundle, places: list[Place], left: list[int], depth: int) -> None:
    variants = [properties_of(bundle, each, left, depth + 1) for each in places if not _is_null(bundle, each)]
    if not variants:
        return
    own = set(gathered.found)
    gathered.required |= set[str].intersection(*(each.required for each in variants))
    for each in variants:
        gathered.is_object &= each.is_object and (bool(own) or bool(each.found or each.hidden or each.required))
        for name, inner in each.found.items():
            known = gathered.found.setdefault(name, inner)
            if known is not inner and name not in own:
                known.others += (inner.schema, *inner.others)
        for name, container in each.hidden.items():
            gathered.hidden.setdefault(name, container)


def _is_null(bundle: Bundle, place: Place) -> bool:
    try:
        return bundle.follow(place).at("type").value == "null"
    except Dangling:
        return False


def _is_hidden(bundle: Bundle, schema: Place) -> bool:
    if schema.at("readOnly").value is True:
        return True
    try:
        return bundle.follow(schema).at("readOnly").value is True
    except Dangling:
        return False
