"""Requests that a document asks for, computed from the schema apart from the code that is tested."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.parse import quote

from fireswarm import pipelines

SAMPLES: dict[str, Any] = {"boolean": True, "array": ["one", "two"], "object": {"a": 1}}
MAX_SAMPLE_CHARS = 100
ODD = " /?&=#%2F+\u00e9"
ORIGIN = "https://made-up.example"
"""Address of the API in the tests of further pages."""

NEXT_PAGE = "/made-up/page?after=7"
FORM = "application/x-www-form-urlencoded"
DEFAULT_STYLES = {"query": "form", "cookie": "form", "path": "simple", "header": "simple"}
MARKS = {"spaceDelimited": " ", "pipeDelimited": "|", "tabDelimited": "\t"}


def cases_of(schema: pipelines.NodeSchema, inputs: dict[str, Any]) -> list[dict[str, Any]]:
    """Return inputs of each operation, and the request that the document asks for.

    Cases are "all" and "required" inputs, and "odd" ones: false, zero, and letters that have a meaning in addresses.
    """
    cases: list[dict[str, Any]] = []
    for operation in schema.operations:
        if schema.missing_of(operation) or operation.template is not None:
            continue
        mine = schema.parameters_of(operation.key)
        every = {each.given_as: _sample(each, number) for number, each in enumerate(mine)}
        needed = {each.given_as: every[each.given_as] for each in mine if each.required}
        known = inputs[operation.key]["properties"]
        defaults = {name: item["default"] for name, item in known.items() if "default" in item}
        odd = {each.given_as: _odd(each, every[each.given_as]) for each in mine}
        for name, given in (("all", every), ("required", needed), ("odd", odd)):
            if name == "all" or given != every:
                request = _request(operation, mine, {**defaults, **given})
                cases.append({"operation": operation.key, "case": name, "parameters": given, "request": request})
    return cases


def pages_of(schema: pipelines.NodeSchema, inputs: dict[str, Any]) -> list[dict[str, Any]]:
    """Return for each operation with further pages two answers, and the requests for both that the document asks for.

    ``links`` are the addresses in the header of the first answer.
    """
    cases: list[dict[str, Any]] = []
    for operation in schema.operations:
        if operation.paging is None or schema.missing_of(operation):
            continue
        mine = schema.parameters_of(operation.key)
        given = {each.given_as: _sample(each, number) for number, each in enumerate(mine) if each.required}
        known = inputs[operation.key]["properties"]
        given = {name: item["default"] for name, item in known.items() if "default" in item} | given
        first = _request(operation, mine, given)
        case = {"operation": operation.key, "parameters": given, "links": {}, "repeats": not _counts(operation.paging)}
        case |= _second_page(operation, operation.paging, mine, given)
        cases.append({**case, "requests": [first, case["requests"]]})
    return cases


def _second_page(
    operation: pipelines.Operation, told: pipelines.Paging, mine: list[pipelines.Parameter], given: dict[str, Any]
) -> dict[str, Any]:
    """Return the answers of two pages, and the request for the second one."""
    page = {"page": given.get(told.input, 1) + 1, "offset": given.get(told.input, 0) + 1} if _counts(told) else {}
    if told.kind in page:
        answers = [_at(told.items, [{"a": 1}]), _at(told.items, [])]
        return {"answers": answers, "requests": _request(operation, mine, {**given, told.input: page[told.kind]})}
    if told.kind == "cursor":
        taken = next(each for each in mine if each.given_as == told.input)
        cursor: Any = taken.options[0] if taken.options else 7 if taken.kind in ("integer", "number") else "made-up 7"
        answers = [_at(told.cursor, cursor), {}]
        return {"answers": answers, "requests": _request(operation, mine, {**given, told.input: cursor})}
    request = _request(operation, mine, given)
    keys = {sent.removeprefix("query ") for sent in operation.security if sent.startswith("query ")}
    query = {name: value for name, value in request["query"].items() if name in keys}
    origin = "/".join(f"{operation.server or ORIGIN}/".split("/")[:3])
    following = {**request, "path": f"{origin}{NEXT_PAGE}", "query": query}
    if told.kind == "link":
        return {"answers": [{"a": 1}, {"a": 2}], "links": {"next": NEXT_PAGE}, "requests": following}
    return {"answers": [_at(told.cursor, NEXT_PAGE), {}], "requests": following}


def _counts(told: pipelines.Paging) -> bool:
    return told.kind in ("page", "offset")


def _at(dotted: str, value: Any) -> Any:
    """Return an answer that has a value at a dotted path."""
    for name in reversed(dotted.split(".") if dotted else []):
        value = {name: value}
    return value


def credential_fields(schema: pipelines.NodeSchema) -> dict[str, str]:
    """Return a made-up value for each field of the credential."""
    fields = {field for each in schema.operations for told in each.security.values() for field in told.split(" ")[1:]}
    return {field: f"made-up {field}" for field in sorted(fields)}


def _sample(parameter: pipelines.Parameter, number: int) -> Any:
    """Return a value of the kind of a parameter, which no other parameter has, as far as its kind allows."""
    if parameter.options:
        return next(option for option in reversed(parameter.options) if option is not None)
    if parameter.kind in ("integer", "number"):
        return 1_000 + number
    return SAMPLES.get(parameter.kind, f"sample {number}: {parameter.name}"[:MAX_SAMPLE_CHARS])


def _odd(parameter: pipelines.Parameter, usual: Any) -> Any:
    """Return a value that code loses if it takes what is false as left out, or writes letters as they are."""
    if parameter.options:
        return next(option for option in parameter.options if option is not None)
    if parameter.kind in ("boolean", "integer", "number"):
        return False if parameter.kind == "boolean" else 0
    if parameter.kind == "array":
        return usual[:1]
    return f"{usual}{ODD}" if isinstance(usual, str) and parameter.place not in ("header", "cookie") else usual


def _request(
    operation: pipelines.Operation, parameters: list[pipelines.Parameter], given: dict[str, Any]
) -> dict[str, Any]:
    path = quote(f"{operation.server}{operation.path}", safe="!$&'()*+,;=:@~/%?[]#{}")
    query: dict[str, Any] = {}
    headers: dict[str, Any] = {}
    cookies: dict[str, Any] = {}
    body: dict[str, Any] = {}
    whole: Any = None
    is_form = operation.media_type.partition(";")[0].strip().lower() == FORM
    for each in parameters:
        if each.given_as not in given:
            continue
        value = given[each.given_as]
        match each.place:
            case "path":
                path = path.replace(quote(f"{{{each.name}}}", safe="!$&'()*+,;=:@~/%?[]#{}"), _in_path(each, value))
            case "body" if each.style == "whole":
                whole = value
            case "body":
                body |= _entries(each, value) if is_form else {each.name: value}
            case place:
                {"query": query, "header": headers, "cookie": cookies}[place] |= _entries(each, value)
    path = path.replace("{", "%7B").replace("}", "%7D")  # those left are no placeholders
    _authenticate(operation, query, headers, cookies)
    if cookies:
        headers["Cookie"] = "; ".join(
            f"{name}={quote(_joined(value, ','), safe=COOKIE)}" for name, value in cookies.items()
        )
    made = {"method": operation.method, "path": path, "query": query, "headers": headers}
    made |= {"body": None, "form": None, "multipart": None, "data": None}
    kind = operation.media_type.partition(";")[0].strip().lower()
    if not operation.media_type and not body and whole is None:
        return made  # it has no body
    is_json = not kind or kind in ("application/json", "*/*") or kind.endswith(("+json", "/json"))
    place = "body" if is_json else "form" if is_form else "multipart" if kind.startswith("multipart/") else "data"
    is_whole = any(each.style == "whole" for each in parameters)
    made[place] = whole if is_whole else body if body or operation.body_required else None
    if place == "data" or (is_json and kind not in ("", "application/json", "*/*")):
        headers["Content-Type"] = operation.media_type
    return made


COOKIE = "!#$%&'()*+-./:<=>?@[]^_`{|}~,"


def _in_path(parameter: pipelines.Parameter, value: Any) -> str:
    style, name = parameter.style or "simple", quote(parameter.name, safe="")
    if style == "matrix":
        if parameter.explode and isinstance(value, list):
            return "".join(f";{name}={quote(str(each), safe='')}" for each in value)
        if parameter.explode and isinstance(value, dict):
            return "".join(f";{quote(key, safe='')}={quote(_text(each), safe='')}" for key, each in value.items())
        return f";{name}={_joined(value, ',', encode=True)}"
    if style == "label":
        return "." + _joined(value, "." if parameter.explode else ",", encode=True, pairs=parameter.explode)
    return _joined(value, ",", encode=True, pairs=parameter.explode)


def _entries(parameter: pipelines.Parameter, value: Any) -> dict[str, Any]:
    """Return what a parameter adds to a query, a form, headers or cookies."""
    name, style = parameter.name, parameter.style or DEFAULT_STYLES.get(parameter.place, "form")
    if style == "json":
        return {name: json.dumps(value, separators=(",", ":"), ensure_ascii=False)}
    if style == "simple":
        return {name: _joined(value, ",", pairs=parameter.explode and bool(parameter.style))}
    if style == "deepObject" and isinstance(value, dict):
        return {f"{name}[{key}]": each for key, each in value.items()}
    explode = parameter.explode if parameter.style else True
    if not isinstance(value, (list, dict)) or explode:
        return value if isinstance(value, dict) else {name: value}
    return {name: _joined(value, MARKS.get(style, ","))}


def _joined(value: Any, mark: str, *, encode: bool = False, pairs: bool = False) -> str:
    def shown(each: Any) -> str:
        return quote(_text(each), safe="") if encode else _text(each)

    if isinstance(value, list):
        return mark.join(map(shown, value))
    if isinstance(value, dict):
        between = "=" if pairs else mark
        return mark.join(f"{shown(key)}{between}{shown(each)}" for key, each in value.items())
    return shown(value)


def _text(value: Any) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def _authenticate(operation: pipelines.Operation, query: Any, headers: Any, cookies: Any) -> None:
    for sent, told in operation.security.items():
        place, _, name = sent.partition(" ")
        kind, *fields = told.split(" ")
        value = f"made-up {fields[0]}"
        match kind.rstrip("?"):
            case "bearer":
                value = f"Bearer {value}"
            case "basic":
                pair = ":".join(f"made-up {field}" for field in fields)
                value = f"Basic {base64.b64encode(pair.encode()).decode()}"
            case _:
                pass
        {"query": query, "header": headers, "cookie": cookies}[place][name] = value
