"""What an operation sends, inferred from recordings: each part of a request is a constant, or made of one parameter.

A template is kept only if it repeats every recorded request and every item. It explains nothing that the recordings do
not show, such as a value that the code computes: then there is no template, and a reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple
from urllib.parse import SplitResult, quote, urlsplit

from pydantic import Field, JsonValue

from fireswarm.contracts.base import Contract
from fireswarm.pipelines.node.recording import Case, RecordedRequest

ANSWERS = "$answers"
"""Name below which the answers to the earlier requests of an operation are, by their numbers."""

MISSING = object()
"""Stands for a value that is not there."""

UNSENT = {"user-agent", "accept", "content-type", "content-length"}
"""Headers that belong to the transport."""


type Presence = Literal["given", "filled", "constant"]
type Place = Literal["query", "header", "body"]


class NoTemplate(Exception):
    """The recordings cannot be explained; the message is the reason."""


class RequestPart(Contract):
    """One value of a request, at ``name`` (its keys from the outside) in ``place``.

    Without ``parameter`` it is ``constant``; otherwise the parameter at this dotted path, within ``pattern``. It is
    sent where the parameter is given. With ``presence`` filled, it is not sent where the parameter is empty; with
    ``constant``, the constant takes its place there.
    """

    place: Place
    name: tuple[str, ...]
    parameter: str = ""
    constant: JsonValue = None
    pattern: str = "{}"
    presence: Presence = "given"


class RequestTemplate(Contract):
    """One request. ``path`` has parameters in braces, by their dotted paths; it may be a whole address."""

    method: str
    path: str
    parts: tuple[RequestPart, ...] = ()
    has_body: bool = False
    encoding: Literal["json", "form"] = "json"


class OperationTemplate(Contract):
    """The requests of an operation in sequence, and where its items come from.

    ``items`` is a dotted path that begins with the number of an answer; ``fixed_items`` are the same for every answer.
    ``authentication`` is how the credential is added: by what the requests show (none, generic, function), or declared
    (the name of a kind such as oAuth2Api). ``cases`` is the number of recorded inputs that the template repeats.
    """

    requests: tuple[RequestTemplate, ...] = Field(min_length=1)
    items: str = "0"
    fixed_items: tuple[JsonValue, ...] | None = None
    credential: str = ""
    authentication: str = "none"
    cases: int = Field(default=0, ge=0)


class SentRequest(NamedTuple):
    """One request of a case, with all that its values can be made of: parameters, credential, and earlier answers."""

    given: Mapping[str, Any]
    named: Mapping[str, str]
    request: RecordedRequest


class Made(NamedTuple):
    """A request that a template makes."""

    method: str
    path: str
    query: dict[str, Any]
    headers: dict[str, Any]
    body: Any
    encoding: str


def look_up(parameters: Mapping[str, Any], dotted: str) -> Any:
    """Return the value at a dotted path, or MISSING."""
    found: Any = parameters
    for part in dotted.split("."):
        if isinstance(found, Mapping) and part in found:
            found = found[part]
        elif isinstance(found, list) and part.isdecimal() and int(part) < len(found):
            found = found[int(part)]
        else:
            return MISSING
    return found


def infer(cases: Sequence[Case], base: str) -> OperationTemplate:
    """Return the template of an operation, whose addresses begin with *base*. Raises NoTemplate."""
    sent = [case for case in cases if case.requests and not case.error]
    if not sent:
        raise NoTemplate(next((case.error for case in cases if case.error), "") or "it sends nothing")
    if len({len(case.requests) for case in sent}) > 1:
        raise NoTemplate("the number of its requests depends on parameters")
    items, fixed = _items(sent)
    first = sent[0].requests[-1]
    template = OperationTemplate(
        requests=tuple(
            _infer_request([_nth_request(case, number) for case in sent], base)
            for number in range(len(sent[0].requests))
        ),
        items=items,
        fixed_items=fixed,
        credential=first.credential or next(iter(sent[0].credentials), ""),
        authentication=first.authentication,
        cases=len(sent),
    )
    for case in sent:
        if fault := difference(template, case, base):
            raise NoTemplate(f"{fault} for the input {case.case}")
    return template


def _nth_request(case: Case, number: int) -> SentRequest:
    """Return request *number* of a case."""
    answers = {str(index): answer for index, answer in enumerate(case.answers[:number])}
    named = {text: name for name, text in _paths({ANSWERS: answers}) if isinstance(text, str)}
    return SentRequest({**case.given, ANSWERS: answers}, {**named, **case.named}, case.requests[number])


def _infer_request(seen: Sequence[SentRequest], base: str) -> RequestTemplate:
    methods = {each.request.method for each in seen}
    if len(methods) > 1:
        raise NoTemplate(f"its method depends on parameters: {', '.join(sorted(methods))}")
    encodings = {each.request.encoding for each in seen if each.request.body is not None}
    if len(encodings) > 1 or encodings - {"json", "form"}:
        raise NoTemplate(f"its body is {', '.join(sorted(encodings))}")
    paths = {_path(each, base) for each in seen}
    return RequestTemplate(
        method=methods.pop(),
        path=max(sorted(paths), key=lambda each: len(placeholders(each))),
        parts=(
            *_parts("query", seen, [each.request.query for each in seen]),
            *_parts("header", seen, [_headers(each.request) for each in seen]),
            *_parts("body", seen, [each.request.body for each in seen]),
        ),
        has_body=any(each.request.body is not None for each in seen),
        encoding="form" if encodings == {"form"} else "json",
    )


def make(template: RequestTemplate, parameters: Mapping[str, Any]) -> Made:
    """Return the request that *template* makes of *parameters*."""
    query: dict[str, Any] = {}
    headers: dict[str, Any] = {}
    whole = next((part for part in template.parts if part.place == "body" and not part.name), None)
    body: Any = _value(whole, parameters) if whole else {}
    places = {"query": query, "header": headers, "body": body}
    for part in template.parts:
        value = _value(part, parameters)
        if value is MISSING or not part.name:
            continue
        target = places[part.place]
        for key in part.name[:-1]:
            target = target.setdefault(key, {})
        target[part.name[-1]] = value
    path = template.path
    for name in placeholders(path):
        value = look_up(parameters, name)
        text = "" if value is MISSING else str(value)
        # At the beginning stands an address.
        path = path.replace(f"{{{name}}}", text if path.startswith("{") else quote(text, safe=""), 1)
    sent = (body or None) if template.has_body else None
    return Made(template.method, path, query, headers, sent, template.encoding if sent else "")


def placeholders(path: str) -> list[str]:
    """Return the dotted names in braces."""
    return [piece.partition("}")[0] for piece in path.split("{")[1:]]


def items_of(template: OperationTemplate, answers: Sequence[Any]) -> list[Any]:
    """Return the items that the operation makes of the answers."""
    if template.fixed_items is not None:
        return list(template.fixed_items)
    return _as_list(look_up({str(number): answer for number, answer in enumerate(answers)}, template.items)) or []


def difference(template: OperationTemplate, case: Case, base: str) -> str:
    """Return how the template's requests or items differ from those of *case*, or ""."""
    for number, request in enumerate(template.requests):
        seen = _nth_request(case, number)
        made, wanted = make(request, seen.given), sent_by(seen.request, base)
        for name, mine, theirs in zip(Made._fields, made, wanted, strict=True):
            if mine != theirs:
                return f"the {name} depends on parameters" if name == "path" else f"the {name} is not explained"
    if case.items is not None and items_of(template, case.answers) != list(case.items):
        return "the items are not explained"
    return ""


def sent_by(request: RecordedRequest, base: str) -> Made:
    """Return what a recorded request sent, in the form of a template's."""
    encoding = request.encoding if request.body else ""
    address, headers = _address(request, base), _headers(request)
    return Made(request.method, address, request.query, headers, request.body or None, encoding)


def _address(request: RecordedRequest, base: str) -> str:
    return request.url.removeprefix(base) if request.url.startswith(base) else request.url


def _path(seen: SentRequest, base: str) -> str:
    """Return the path of a request, with names for made-up values."""
    path = _address(seen.request, base)
    for value, name in sorted(seen.named.items(), key=lambda item: -len(item[0])):
        path = path.replace(value, f"{{{name}}}").replace(quote(value, safe=""), f"{{{name}}}")
    return path


def _headers(request: RecordedRequest) -> dict[str, Any]:
    return {key: value for key, value in request.headers.items() if key not in UNSENT}


def _parts(place: Place, seen: Sequence[SentRequest], sent: Sequence[Any]) -> list[RequestPart]:
    """Explain all that was sent in one place."""
    if all(value in (None, {}) for value in sent):
        return []
    return list(_explain(place, (), seen, [MISSING if value in (None, {}) else value for value in sent]))


def _explain(
    place: Place, name: tuple[str, ...], seen: Sequence[SentRequest], sent: Sequence[Any]
) -> Iterator[RequestPart]:
    """Explain the value at *name*, which is MISSING in some cases: as a whole, or key by key."""
    if name or place == "body":
        part = _whole(place, name, seen, sent)
        if part is not None:
            yield part
            return
    if not all(value is MISSING or isinstance(value, dict) for value in sent):
        raise NoTemplate(f"the code computes {'.'.join(name) or 'all'} of the {place}")
    keys = dict.fromkeys(key for value in sent if isinstance(value, dict) for key in value)
    for key in keys:
        inner = [value.get(key, MISSING) if isinstance(value, dict) else MISSING for value in sent]
        yield from _explain(place, (*name, key), seen, inner)


def _whole(place: Place, name: tuple[str, ...], seen: Sequence[SentRequest], sent: Sequence[Any]) -> RequestPart | None:
    """Return the part that explains a value in all cases, or None."""
    pairs = list(zip(seen, sent, strict=True))
    given = [(each, value) for each, value in pairs if value is not MISSING]
    last = name[-1] if name else ""
    for dotted, pattern in _candidates(given[0][0], given[0][1], last):
        part = RequestPart(place=place, name=name, parameter=dotted, pattern=pattern)
        for more in _presences(part, given):
            if all(_value(more, each.given) == value for each, value in pairs):
                return more
    first = given[0][1]
    is_constant = len(given) == len(pairs) and all(value == first for _, value in given)
    if is_constant and not any(_holds(first, text) for each, _ in given for text in each.named):
        return RequestPart(place=place, name=name, constant=first)
    return None


def _candidates(seen: SentRequest, value: Any, last: str) -> list[tuple[str, str]]:
    """Return parameters, with patterns, that may stand for a value; the likeliest first."""
    found = [(dotted, "{}") for dotted, each in _paths(seen.given) if each == value and type(each) is type(value)]
    found.sort(key=lambda item: item[0].rpartition(".")[2].lower() != last.lower())
    if isinstance(value, str):
        made = [(name, value.replace(each, "{}")) for each, name in seen.named.items() if each in value]
        found = [*found, *((name, pattern) for name, pattern in made if pattern.count("{}") == 1)]
    if value in (True, False, None, "", 0) or value == []:  # too common to tell from where it is
        found = [item for item in found if item[0].rpartition(".")[2].lower() == last.lower()]
    return list(dict.fromkeys(found))


def _paths(content: Any, before: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all values within *content*, each with its dotted path."""
    listed: Iterable[tuple[str, Any]] = ()
    if isinstance(content, Mapping):
        listed = ((name, value) for name, value in content.items() if "." not in name)
    elif isinstance(content, list) and before.startswith(f"{ANSWERS}."):
        listed = ((str(number), value) for number, value in enumerate(content))
    for name, value in listed:
        yield f"{before}{name}", value
        yield from _paths(value, f"{before}{name}.")


def _presences(part: RequestPart, given: Sequence[tuple[SentRequest, Any]]) -> Iterator[RequestPart]:
    """Yield *part* with each rule for where it is sent; the strictest first."""
    yield part
    yield part.model_copy(update={"presence": "filled"})
    others = [value for each, value in given if not _is_filled(look_up(each.given, part.parameter))]
    if others and all(value == others[0] for value in others):
        yield part.model_copy(update={"presence": "constant", "constant": others[0]})


def _is_filled(value: Any) -> bool:
    return value is not MISSING and bool(value)


def _fill(pattern: str, value: Any) -> Any:
    if value is MISSING or pattern == "{}":
        return value
    return pattern.replace("{}", str(value))


def _value(part: RequestPart, parameters: Mapping[str, Any]) -> Any:
    if not part.parameter:
        return part.constant
    value = look_up(parameters, part.parameter)
    if part.presence in ("filled", "constant") and not _is_filled(value):
        return part.constant if part.presence == "constant" else MISSING
    return _fill(part.pattern, value)


def _holds(value: Any, text: str) -> bool:
    if isinstance(value, Mapping):
        return any(_holds(each, text) for each in value.values())
    if isinstance(value, list):
        return any(_holds(each, text) for each in value)
    return text == str(value) or (isinstance(value, str) and text in value)


def _items(cases: Sequence[Case]) -> tuple[str, tuple[JsonValue, ...] | None]:
    """Return where the items of all cases are in their answers, or the items if they are always the same."""
    ended = [case for case in cases if case.items is not None]
    if not ended:
        return str(len(cases[0].answers or (0,)) - 1), None
    numbered = [{str(number): answer for number, answer in enumerate(case.answers)} for case in ended]
    last_first = dict(reversed(numbered[0].items()))
    for dotted, _ in _paths(last_first):
        if all(
            _as_list(look_up(answers, dotted)) == list(case.items or ())
            for case, answers in zip(ended, numbered, strict=True)
        ):
            return dotted, None
    if all(case.items == ended[0].items for case in ended):
        text = str(ended[0].items)
        if "a_" not in text and not any(value in text for case in ended for value in case.named):
            return "0", ended[0].items
    raise NoTemplate("the code computes the items")


def _as_list(found: Any) -> list[Any] | None:
    return None if found is MISSING else found if isinstance(found, list) else [found]


def common_base(urls: Sequence[str]) -> str:
    """Return the most frequent host, with the leading parts of its paths that are the same in all addresses; or ""."""
    parted = [each for each in map(_split, urls) if each.netloc]
    hosts = Counter(f"{each.scheme}://{each.netloc}" for each in parted)
    if not hosts:
        return ""
    host = hosts.most_common(1)[0][0]
    common: list[str] = []
    paths = [each.path for each in parted if f"{each.scheme}://{each.netloc}" == host]
    for parts in zip(*(path.split("/")[1:-1] for path in paths), strict=False):
        if len(set(parts)) > 1:
            break
        common.append(parts[0])
    return "/".join([host, *common])


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:  # a host in brackets that is no address
        return SplitResult("", "", "", "", "")
