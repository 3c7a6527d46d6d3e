"""Write the code of an operation from what a document says: method, path, and the place and style of each parameter."""

from __future__ import annotations

import re

from fireswarm import pipelines

from .operations import call_expression, text_literal

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
STYLES = {"query": ("form", True), "cookie": ("form", True), "header": ("simple", False), "path": ("simple", False)}
"""Style and explode of each place, if the document says nothing else."""


def code_of(schema: pipelines.NodeSchema, operation: pipelines.Operation, about: str) -> str:
    """Return the function of an operation of which nothing is missing. *about* is its docstring, without quotes."""
    mine = schema.parameters_of(operation.key)
    by_place = {place: [each for each in mine if each.place == place] for place in (*STYLES, "body")}
    secret = {place: _secrets(operation, place) for place in ("query", "cookie", "header")}
    arguments = [text_literal(operation.method), _path(operation, by_place["path"])]
    query = [_sent(each) for each in by_place["query"]] + secret["query"]
    cookie = [_sent(each) for each in by_place["cookie"]] + secret["cookie"]
    headers = [_sent(each) for each in by_place["header"]] + secret["header"]
    if cookie:
        headers.append(f"cookies({call_expression('parts', cookie, 2)})")
    arguments += [f"query={call_expression('parts', query, 2)}"] * bool(query)
    body, kind = _body(operation, by_place["body"])
    arguments += [body] * bool(body)
    headers += [f'{{"Content-Type": {text_literal(kind)}}}'] * bool(kind and body)
    arguments += [f"headers={call_expression('parts', headers, 2)}"] * bool(headers)
    head = f'\ndef {operation.function}(parameters: dict[str, Any], send: Send) -> Any:\n    """{about}."""\n'
    return f"{head}    return {call_expression('send', arguments, 1)}\n"


def _path(operation: pipelines.Operation, parameters: list[pipelines.Parameter]) -> str:
    """Return the expression of the address: its literal parts, encoded, and the parameters between them."""
    by_name = {each.name: each for each in parameters}
    terms = [text_literal(operation.server.rstrip("/"))] if operation.server else []
    for piece in re.split(r"(\{[^{}]*\})", operation.path):
        if piece[1:-1] in by_name and piece.startswith("{"):
            terms.append(f"part({_named(by_name[piece[1:-1]])})")
        elif piece:
            terms.append(text_literal(pipelines.quote_address(piece)))
    return " + ".join(terms)


def _named(parameter: pipelines.Parameter) -> str:
    """Return the arguments that name a parameter and its style, as far as they are not the usual ones."""
    style, explode = STYLES.get(parameter.place, ("form", True))
    words = ["parameters", text_literal(parameter.given_as)]
    words += [text_literal(parameter.name)] * bool(parameter.input)
    if parameter.place != "path" and parameter.kind == "string" and parameter.style != "json":
        return ", ".join(words)  # a text is sent as it is
    if parameter.place == "header":
        words.append('style="simple"')
    elif parameter.style and parameter.style != style:
        words.append(f"style={text_literal(parameter.style)}")
    plain = ("integer", "number", "boolean", *(["array"] if parameter.place == "header" else []))
    is_whole = parameter.place != "path" and parameter.kind in plain  # explode changes nothing
    if parameter.style and not is_whole and (parameter.explode != explode or parameter.place == "header"):
        words.append(f"explode={parameter.explode}")
    elif parameter.place == "header" and not is_whole:
        words.append("explode=False")
    return ", ".join(words)


def _sent(parameter: pipelines.Parameter) -> str:
    return f"put({_named(parameter)})"


def _body(operation: pipelines.Operation, parameters: list[pipelines.Parameter]) -> tuple[str, str]:
    """Return the argument that is the body, and its media type if the transport would send another one."""
    kind = operation.media_type
    if not parameters and not kind:
        return "", ""
    base = kind.partition(";")[0].strip().lower()
    is_json = not base or base in (JSON, "*/*") or base.endswith(("+json", "/json"))
    if whole := next((each for each in parameters if each.style == "whole"), None):
        taken = f"get_body(parameters, {text_literal(whole.given_as)})"
        if is_json:
            return f"body={taken}", kind if base not in ("", JSON, "*/*") else ""
        name = "form" if base == FORM else "multipart" if base.startswith("multipart/") else "data"
        return f"{name}={taken}", kind if name == "data" else ""
    names = [
        f"({text_literal(each.given_as)}, {text_literal(each.name)})" if each.input else text_literal(each.name)
        for each in parameters
    ]
    if base == FORM:
        made = call_expression("parts", [_sent(each) for each in parameters], 2)
    else:
        made = call_expression("pick", ["parameters", *names], 2)
    name = "form" if base == FORM else "multipart" if base.startswith("multipart/") else "body"
    argument = f"{name}={made if operation.body_required else f'content({made})'}"
    return argument, kind if name == "body" and base not in ("", JSON, "*/*") else ""


def _secrets(operation: pipelines.Operation, place: str) -> list[str]:
    """Return the entries that authenticate a request in one place."""
    entries: list[str] = []
    for sent, told in operation.security.items():
        where, _, name = sent.partition(" ")
        if where != place:
            continue
        kind, _, fields = told.partition(" ")
        kind, is_optional = kind.rstrip("?"), kind.endswith("?")
        taken = [f"credential({text_literal(field)}{', MISSING' if is_optional else ''})" for field in fields.split()]
        value = {"bearer": f'within("Bearer {{}}", {taken[0]})', "basic": f"basic({', '.join(taken)})"}
        entries.append(f"{{{text_literal(name)}: {value.get(kind, taken[0])}}}")
    return entries
