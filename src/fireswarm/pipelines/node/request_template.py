"""What an operation sends, inferred from recordings: each part of a request is a constant, or made of parameters.

A template is kept only if it repeats every recorded request and every item. It explains nothing that the recordings do
not show, such as a value that the code computes: then there is no template, and a reason.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import SplitResult, urlsplit

from pydantic import Field, JsonValue

from fireswarm.contracts.base import Contract
from fireswarm.pipelines.node import shaping
from fireswarm.pipelines.node.explaining import explain, explain_address, without_base
from fireswarm.pipelines.node.paging import PageRun, align_steps
from fireswarm.pipelines.node.recording import Case, Encoding, RecordedRequest
from fireswarm.pipelines.node.scopes import ANSWERS, FAULTS, Scope, is_same, paths_in
from fireswarm.pipelines.node.shaping import MISSING
from fireswarm.pipelines.node.values import PAGE, PAGES, Address, Chosen, Either, Value, names_in

UNSENT = {"user-agent", "accept", "content-type", "content-length"}
"""Headers that belong to the transport; it cannot know the type of a text or of bytes."""


class NoTemplate(Exception):
    """The recordings cannot be explained; the message is the reason."""


class Condition(Contract):
    """Holds if a parameter has ``value``; with ``is_filled``, if it is there and not empty."""

    parameter: str
    value: JsonValue = None
    is_filled: bool = False

    def holds(self, given: Mapping[str, Any]) -> bool:
        """Return whether it holds for these parameters."""
        found = shaping.take(given, self.parameter)
        return shaping.nonempty(found) is not MISSING if self.is_filled else is_same(found, self.value)


class RequestTemplate(Contract):
    """One request, and further ones of its kind if the answer has further pages. ``when`` says whether it is sent."""

    method: str
    path: Value
    query: Value | None = None
    headers: Value | None = None
    body: Value | None = None
    encoding: Encoding = "json"
    when: Condition | None = None
    pages: FurtherPages | None = None

    @property
    def shown_path(self) -> str:
        """One path, with the dotted names in it in braces."""
        return next(patterns_of(self.path), "")


class FurtherPages(Contract):
    """Further pages are requested by ``further`` while the last page has something at ``cursor``.

    ``when`` says whether they are requested at all.
    """

    cursor: str
    further: RequestTemplate
    when: Condition | None = None


class OperationTemplate(Contract):
    """The requests of an operation in sequence, and what its items are made of.

    ``authentication``: what the requests show (none, generic, function), or a declared kind such as oAuth2Api.
    ``cases``: number of recorded inputs that the template repeats.
    """

    requests: tuple[RequestTemplate, ...] = Field(min_length=1)
    items: Value | None = None
    credential: str = ""
    authentication: str = "none"
    cases: int = Field(default=0, ge=0)

    def list_requests(self) -> Iterator[RequestTemplate]:
        """Yield all requests, those for further pages too."""
        yield from self.requests
        yield from (request.pages.further for request in self.requests if request.pages is not None)

    def values(self) -> Iterator[Value | None]:
        """Yield all values of requests and items."""
        for each in self.list_requests():
            yield from (each.path, each.query, each.headers, each.body)
        yield self.items


RequestTemplate.model_rebuild()


class Made(NamedTuple):
    """A request that a template makes."""

    method: str
    path: str
    query: dict[str, Any]
    headers: dict[str, Any]
    body: Any
    encoding: str


def patterns_of(path: Value | None) -> Iterator[str]:
    """Yield what a path may be, with the dotted names in braces."""
    match path:
        case Address():
            yield path.pattern
        case Either():
            yield from patterns_of(path.filled)
            yield from patterns_of(path.empty)
        case Chosen():
            for row in path.table:
                yield from patterns_of(row.made)
        case _:
            return


def infer(cases: Sequence[Case], base: str) -> OperationTemplate:
    """Return the template of an operation, whose addresses begin with *base*. Raises NoTemplate."""
    sent = [case for case in cases if case.requests and not case.error and not case.refused]
    if not sent:
        raise NoTemplate(next((case.error for case in cases if case.error), "") or "it sends nothing")
    if any(case.shows_file for case in sent):
        raise NoTemplate("it sends name, type or size of a file")
    try:
        steps = align_steps(sent)
    except ValueError as error:
        raise NoTemplate(str(error)) from error
    paged = frozenset(number for each in steps for number, step in enumerate(each) if step and step.cursors)
    seen = [_Seen(case, each, paged) for case, each in zip(sent, steps, strict=True)]
    requests = tuple(_infer_request(seen, number, base) for number in range(len(steps[0])))
    template = OperationTemplate(
        requests=requests,
        items=_infer_items(seen, [each.when for each in requests if each.when is not None]),
        credential=sent[0].requests[-1].credential or next(iter(sent[0].credentials), ""),
        authentication=sent[0].requests[-1].authentication,
        cases=len(sent),
    )
    _refuse_entries(template)
    for case in sent:
        if fault := difference(template, case, base):
            raise NoTemplate(f"{fault} for the input {case.case}")
    if any(case.refused and (case.items is not None or len(case.requests) > 1) for case in cases):
        raise NoTemplate("it goes on after an answer that is an error")
    return template


class _Seen(NamedTuple):
    """A case with its requests in steps; ``paged`` are the steps that ask for further pages in some case."""

    case: Case
    steps: Sequence[PageRun | None]
    paged: frozenset[int]

    def scope(self, number: int, page: Any = MISSING) -> Scope:
        """Return what step *number* is made of, after *page* if it asks for a further one."""
        case, answers = self.case, self.case.answers
        steps = [(str(at), step) for at, step in enumerate(self.steps[:number]) if step is not None]
        earlier = [(at, step) for at, step in steps if step.first < len(answers)]
        given = {**case.given, ANSWERS: {at: answers[step.first] for at, step in reversed(earlier)}}
        if page is not MISSING:
            given[PAGE] = page
        known = {name: given[name] for name in (ANSWERS, PAGE) if name in given}
        named = {text: name for name, text in paths_in(known) if isinstance(text, str) and text}
        given[PAGES] = {at: list(answers[step.first : step.last + 1]) for at, step in earlier if int(at) in self.paged}
        return Scope(case.case, given, {**named, **case.named})


def _infer_request(seen: Sequence[_Seen], number: int, base: str) -> RequestTemplate:
    sending = [(each, step) for each in seen if (step := each.steps[number]) is not None]
    requests = [each.case.requests[step.first] for each, step in sending]
    template = _infer_one([each.scope(number) for each, _ in sending], requests, base)
    others = [each.case for each in seen if each.steps[number] is None]
    when = _condition([each.case for each, _ in sending], others) if others else None
    paged = [(each, step) for each, step in sending if step.cursors]
    if not paged:
        return template.model_copy(update={"when": when})
    after: list[Scope] = []
    further: list[RecordedRequest] = []
    for each, step in paged:
        for page in range(step.first, step.last):
            after.append(each.scope(number, each.case.answers[page]))
            further.append(each.case.requests[page + 1])
    cursor = paged[0][1].cursors[0]
    if any(cursor not in step.cursors for _, step in paged):
        raise NoTemplate("what leads to the next page depends on parameters")
    once = [each.case for each, step in sending if not step.cursors]
    pages_when = _condition([each.case for each, _ in paged], once) if once else None
    pages = FurtherPages(cursor=cursor, further=_infer_one(after, further, base), when=pages_when)
    return template.model_copy(update={"pages": pages, "when": when})


def _condition(holding: Sequence[Case], others: Sequence[Case]) -> Condition:
    """Return what holds for some cases, and not for *others*. Raises NoTemplate if nothing does, or several parameters.

    A parameter that a case changes alone decides, and of others a boolean; otherwise there may be only one.
    """
    found: dict[str, Condition] = {}
    for name, value in paths_in(holding[0].given):
        if name.startswith("$"):
            continue
        for each in (Condition(parameter=name, value=value), Condition(parameter=name, is_filled=True)):
            if not each.is_filled and (not isinstance(value, (bool, str)) or value in holding[0].named):
                continue
            if all(each.holds(case.given) for case in holding) and not any(each.holds(case.given) for case in others):
                found.setdefault(name, each)
    changed = {case.case.partition("=")[0] for case in (*holding, *others) if "=" in case.case}
    likely = [each for name, each in found.items() if name in changed]
    likely = likely or [each for each in found.values() if each.value is True and "." not in each.parameter]
    likely = likely or (list(found.values()) if len(found) == 1 else [])
    if not likely:
        raise NoTemplate("the number of its requests depends on several parameters")
    return likely[0]


def _infer_one(scopes: Sequence[Scope], requests: Sequence[RecordedRequest], base: str) -> RequestTemplate:
    methods = {each.method for each in requests}
    if len(methods) > 1:
        raise NoTemplate(f"its method depends on parameters: {', '.join(sorted(methods))}")
    encodings: set[Encoding] = {each.given_as for each in requests if each.body is not None}
    if len(encodings) > 1:
        raise NoTemplate(f"its body is {', '.join(sorted(encodings))}")
    path = explain_address(scopes, [_address(each, base) for each in requests], base)
    if path is None:
        raise NoTemplate("the path depends on parameters")
    return RequestTemplate(
        method=methods.pop(),
        path=path,
        query=_infer_place("query", scopes, [each.query for each in requests]),
        headers=_infer_place("header", scopes, [_headers(each) for each in requests]),
        body=_infer_place("body", scopes, [each.body for each in requests]),
        encoding=encodings.pop() if encodings else "json",
    )


def _infer_place(place: str, scopes: Sequence[Scope], sent: Sequence[Any]) -> Value | None:
    """Explain all that was sent in one place. Raises NoTemplate."""
    values = [MISSING if value in (None, {}) else value for value in sent]
    if all(value is MISSING for value in values):
        return None
    found = explain(scopes, values)
    if found is None:
        raise NoTemplate(f"the code computes {_fault(scopes, values)} of the {place}")
    return found


def _fault(scopes: Sequence[Scope], values: Sequence[Any]) -> str:
    """Return the first key of objects that is not explained."""
    if all(value is MISSING or isinstance(value, dict) for value in values):
        for key in dict.fromkeys(key for value in values if value is not MISSING for key in value):
            inner = [value.get(key, MISSING) if value is not MISSING else MISSING for value in values]
            if explain(scopes, inner, key) is None:
                return str(key)
    return "all"


def _infer_items(seen: Sequence[_Seen], conditions: Sequence[Condition]) -> Value | None:
    """Return what the items are made of; *conditions* decide which requests there are. Raises NoTemplate."""
    ended = [each for each in seen if each.case.items is not None]
    found = _explain_items(ended) if ended else None
    if found is not None or not ended:
        return found
    for when in conditions:
        holding = [each for each in ended if when.holds(each.case.given)]
        others = [each for each in ended if each not in holding]
        filled, empty = (_explain_items(each) if each else None for each in (holding, others))
        if filled is not None and empty is not None and (when.is_filled or when.value is True):
            return Either(name=when.parameter, filled=filled, empty=empty)
    raise NoTemplate("the code computes the items")


def _explain_items(seen: Sequence[_Seen]) -> Value | None:
    return explain([each.scope(len(each.steps)) for each in seen], [list(each.case.items or ()) for each in seen])


def _refuse_entries(template: OperationTemplate) -> None:
    """Raise NoTemplate if several entries of a list are named: the list of another answer may have more."""
    names = {name for value in template.values() for name in names_in(value) if name.startswith(ANSWERS)}
    kinds = Counter(re.sub(r"(?<=[^$]\.)\d+(?=\.|$)", "#", name.removeprefix(f"{ANSWERS}.")) for name in names)
    if any(number > 1 for number in kinds.values()):
        raise NoTemplate("it treats each entry of a list in an answer by itself")


def make(template: RequestTemplate, scope: Mapping[str, Any]) -> Made:
    """Return the request that *template* makes of *scope*. Raises ValueError and TypeError."""
    query, headers, body = (_content(value, scope) for value in (template.query, template.headers, template.body))
    path = str(template.path.of(scope))
    return Made(template.method, path, query or {}, headers or {}, body, template.encoding if body else "")


def _content(value: Value | None, scope: Mapping[str, Any]) -> Any:
    return shaping.content(MISSING if value is None else value.of(scope))


def carry_out(template: OperationTemplate, given: Mapping[str, Any], send: Callable[[Made], Any]) -> list[Any]:
    """Send the requests of an operation, and return its items. *given* are its parameters, and the credential."""
    answers: dict[str, Any] = {}
    pages: dict[str, list[Any]] = {}

    def scope(**more: Any) -> dict[str, Any]:
        # The latest answer first: what stands in several is taken from it.
        return {**given, ANSWERS: dict(reversed(answers.items())), PAGES: pages, **more}

    for number, request in enumerate(template.requests):
        if request.when is not None and not request.when.holds(given):
            pages[str(number)] = []
            continue
        known = scope()
        answers[str(number)] = answer = send(make(request, known))
        if (further := request.pages) is not None:
            pages[str(number)] = [answer]
            if further.when is None or further.when.holds(given):
                pages[str(number)] = shaping.follow(answer, further.cursor, _request_after(further, known, send))
    if template.items is None:
        return shaping.items(answers.get(str(len(template.requests) - 1), MISSING))
    return shaping.items(template.items.of(scope()))


def _request_after(pages: FurtherPages, known: Mapping[str, Any], send: Callable[[Made], Any]) -> Callable[[Any], Any]:
    return lambda page: send(make(pages.further, {**known, PAGE: page}))


def difference(template: OperationTemplate, case: Case, base: str) -> str:
    """Return how the template's requests or items differ from those of *case*, or ""."""
    sent = 0

    def send(made: Made) -> Any:
        nonlocal sent
        if sent == len(case.requests):
            raise NoTemplate("it sends more requests than were recorded")
        made = made._replace(path=without_base(made.path, base))
        for name, mine, theirs in zip(Made._fields, made, sent_by(case.requests[sent], base), strict=True):
            if not is_same(mine, theirs):
                raise NoTemplate(f"the {name} is not explained")
        sent += 1
        return case.answers[sent - 1] if sent <= len(case.answers) else None

    try:
        items = carry_out(template, case.given, send)
    except NoTemplate as error:
        return str(error)
    except FAULTS as error:
        return f"the template fails ({error})"
    if sent < len(case.requests):
        return "it sends fewer requests than were recorded"
    if case.items is not None and not is_same(items, list(case.items)):
        return "the items are not explained"
    return ""


def sent_by(request: RecordedRequest, base: str) -> Made:
    """Return what a recorded request sent, in the form of a template's."""
    encoding = request.given_as if request.body else ""
    address, headers = _address(request, base), _headers(request)
    return Made(request.method, address, request.query, headers, request.body or None, encoding)


def _address(request: RecordedRequest, base: str) -> str:
    """Return the address after *base*, with spaces and the like encoded as in a request."""
    return shaping.quote_address(without_base(request.url, base))


def _headers(request: RecordedRequest) -> dict[str, Any]:
    unsent = UNSENT - {"content-type"} if request.body and request.given_as == "data" else UNSENT
    return {key: value for key, value in request.headers.items() if key not in unsent}


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
