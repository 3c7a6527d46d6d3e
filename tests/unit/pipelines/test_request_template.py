"""Templates of requests are inferred from recordings, and only if they repeat all of them."""

from __future__ import annotations

import importlib.util
import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fireswarm.pipelines import (
    ANSWERS,
    CREDENTIALS,
    NoTemplate,
    Operation,
    OperationTemplate,
    common_base,
    infer,
    shaping,
)
from fireswarm.pipelines.node.recording import Case, RecordedRequest
from fireswarm.pipelines.node.request_template import Made, RequestTemplate, carry_out, make
from fireswarm.pipelines.node.shaping import Unrecorded
from fireswarm.pipelines.node.values import Address, Constant, ObjectValue, Taken, Text, Value
from fireswarm.settings.packaged import packaged_path

BASE = "https://api.example"
SECRETS = {"c_token": "token"}
NAMES = ("title", "kind", "more", "limit")

Send = Callable[[Mapping[str, Any]], dict[str, Any]]


def named(content: Any, before: str = "") -> dict[str, str]:
    """Return the texts within *content*, each with its dotted path."""
    if isinstance(content, str):
        return {content: before} if content else {}
    pairs = content.items() if isinstance(content, Mapping) else enumerate(content) if isinstance(content, list) else ()
    return {text: path for name, each in pairs for text, path in named(each, f"{before}.{name}".lstrip(".")).items()}


def case(title: str, parameters: Mapping[str, Any], send: Send, answer: Any = None, items: Any = None) -> Case:
    """One recorded case of code that sends *send* of its parameters. Its texts are made-up values."""
    request = RecordedRequest.model_validate({"method": "POST", "url": f"{BASE}/books", **send(parameters)})
    return Case(
        case=title, parameters=dict(parameters), values=named(parameters), requests=(request,), answers=(answer,),
        items=items, secrets=SECRETS,
    )  # fmt: skip


CASES: tuple[Mapping[str, Any], ...] = (
    {"title": "s1title", "kind": "novel", "words": "s1word", "more": {}, "limit": 7, "tags": {}, "due": "",
     "quick": False},
    {"title": "s2title", "kind": "guide", "words": "s2one, s2two", "more": {"note": "s3note", "pages": "s4pages"},
     "limit": 9, "tags": {"tag": [{"name": "s5name", "value": "s6value"}, {"name": "s7name", "value": "s8value"}]},
     "due": "2026-01-02T03:04:05.000Z", "quick": True},
    {"title": "s5 title: x", "kind": "novel", "words": "s9word", "more": {"note": "s6note"}, "limit": 0,
     "tags": {"tag": [{"name": "s9name", "value": "s10value"}]}, "due": "2026-02-03T04:05:06.000Z", "quick": False},
)  # fmt: skip
TITLES = ("plain", "kind=guide", "all")
PAGED = ("plain", "quick=true", "all")


def inferred(send: Send) -> OperationTemplate:
    return infer([case(title, given, send) for title, given in zip(TITLES, CASES, strict=True)], BASE)


EXPLAINED: dict[str, Send] = {
    "a parameter": lambda given: {"body": {"name": given["title"]}},
    "a constant": lambda given: {"body": {"name": given["title"], "version": 2}},
    "within a text": lambda given: {"body": {"ref": f"book:{given['title']}!"}},
    "in the address": lambda given: {"url": f"{BASE}/books/{given['title']}/pages"},
    "encoded in the address": lambda given: {"url": f"{BASE}/books/{quote(given['title'], safe='')}"},
    "encoded in the address in two ways": lambda given: {
        "url": f"{BASE}/books/{quote(given['words'], safe='')}/{quote(given['title'], safe=':')}"
    },
    "a boolean of a similar name": lambda given: {"body": {"isQuick": given["quick"]} if given["quick"] else {}},
    "one text or another": lambda given: {
        "body": {"name": f"with {given['more']['note']}" if "note" in given["more"] else "without"}
    },
    "a nested name": lambda given: {"body": {"a": {"b": {"c": given["title"]}}}},
    "a whole group": lambda given: {"body": {"name": given["title"], "more": given["more"]}},
    "a part of a group, if it is there": lambda given: {
        "body": {"name": given["title"]} | ({"note": given["more"]["note"]} if "note" in given["more"] else {})
    },
    "only if it is not empty": lambda given: {"query": {"limit": given["limit"]} if given["limit"] else {}},
    "a default": lambda given: {"query": {"limit": given["limit"] or 50}},
    "the credential": lambda given: {"headers": {"authorization": "Bearer c_token"}, "body": {"name": given["title"]}},
    "a form": lambda given: {"body": {"name": given["title"]}, "encoding": "form"},
    "several parts": lambda given: {"body": {"name": given["title"], "kind": "x"}, "encoding": "multipart"},
    "a plain text": lambda given: {"body": f"{given['title']}: done", "encoding": "text"},
    "a file": lambda given: {"body": given["title"], "encoding": "binary"},
    "a file as base64": lambda given: {"body": {"content": b64encode(given["title"].encode()).decode()}},
    "another host": lambda given: {"url": f"https://upload.example/{given['title']}"},
    "two parameters in one text": lambda given: {"body": {"name": f"{given['title']} ({given['words']})"}},
    "an address by a parameter": lambda given: {"url": f"{BASE}/{'books' if given['kind'] == 'novel' else 'guides'}"},
    "a constant by a parameter": lambda given: {"body": {"code": 1 if given["kind"] == "novel" else 2}},
    "words of a text": lambda given: {"body": {"words": given["words"].split(", ")}},
    "capitals": lambda given: {"body": {"name": given["title"].upper()}},
    "the day of a date": lambda given: {"body": {"due": given["due"][:10]} if given["due"] else {}},
    "a list of entries": lambda given: {
        "body": {"tags": [{"key": each["name"], "n": 1} for each in given["tags"].get("tag", [])]}
    },
    "an object of entries": lambda given: {
        "body": {"tags": {each["name"]: each["value"] for each in given["tags"].get("tag", [])}}
    },
    "JSON within a text": lambda given: {"query": {"filter": json.dumps(given["more"], separators=(",", ":"))}},
}

COMPUTED: dict[str, Send] = {
    "a part of a text": lambda given: {"body": {"name": given["title"][1:4]}},
    "a sum": lambda given: {"body": {"limit": given["limit"] + 1}},
    "a method by a parameter": lambda given: {"method": "PUT" if given["kind"] == "guide" else "POST"},
    "a name that is a parameter": lambda given: {"body": {given["title"]: True}},
    "the name of a file": lambda given: {"body": {"name": "made-up-file.bin"}},
    "the type of a file": lambda given: {"headers": {"x-type": "made-up/mime-type"}},
}


@pytest.mark.parametrize("name", list(EXPLAINED))
def test_template_repeats_what_was_sent(name: str) -> None:
    template = inferred(EXPLAINED[name])
    assert template.cases == len(CASES)
    other = {
        "title": "Über uns", "kind": "guide", "words": "a, b, c", "more": {"note": "n"}, "limit": 3, "quick": True,
        "tags": {"tag": [{"name": "x", "value": "1"}, {"name": "y", "value": "2"}, {"name": "z", "value": "3"}]},
        "due": "2027-05-06T07:08:09.000Z",
    }  # fmt: skip
    sent = EXPLAINED[name](other)
    given_to = {**other, CREDENTIALS: {"token": "c_token"}}
    made = make(template.requests[0], given_to)
    if "address" in name and "url" in sent:
        assert made.path == quote(sent["url"].removeprefix(BASE), safe="/:%")
    assert (made.query, made.headers, made.body or {}) == (
        sent.get("query", {}), sent.get("headers", {}), sent.get("body", {}),
    )  # fmt: skip


@pytest.mark.parametrize("name", list(COMPUTED))
def test_what_the_code_computes_gets_no_template(name: str) -> None:
    with pytest.raises(NoTemplate):
        inferred(COMPUTED[name])


def test_values_of_earlier_answers_are_found() -> None:
    answer: Any = {"copies": [{"id": "a_copies_0_id"}, {"id": "a_copies_1_id"}]}
    first = RecordedRequest(method="GET", url=f"{BASE}/books/s1id")
    second = RecordedRequest(method="POST", url=f"{BASE}/loans", body={"copy": "a_copies_1_id"})
    done = Case(
        case="plain", parameters={"id": "s1id"}, values={"s1id": "id"}, requests=(first, second),
        answers=(answer, {"id": "a_id"}), items=({"id": "a_id"},),
    )  # fmt: skip
    template = infer([done], BASE)
    assert template.requests[1].body == ObjectValue(fields={"copy": Taken(name=f"{ANSWERS}.0.copies.1.id")})
    answers = iter([{"copies": [{"id": 3}, {"id": 4}]}, {"id": 5}])
    assert carry_out(template, {"id": "x"}, lambda made: next(answers)) == [{"id": 5}]


def test_items_that_the_code_makes_are_explained_or_get_no_template() -> None:
    def of(make_items: Callable[[Any, Any], list[Any]]) -> OperationTemplate:
        cases: list[Case] = []
        for title, parameters in zip(TITLES, CASES, strict=True):
            answer = {"id": f"a0{title}_id", "name": f"a0{title}_name"}
            items = make_items(parameters, answer)
            cases.append(case(title, parameters, EXPLAINED["a parameter"], answer, items))
        return infer(cases, BASE)

    def made(template: OperationTemplate) -> list[Any]:
        return carry_out(template, CASES[1], lambda _: {"id": 5, "name": "n"})

    found = of(lambda given, answer: [{"ID": answer["id"], "title": given["title"]}])
    assert made(found) == [{"ID": 5, "title": "s2title"}]
    assert made(of(lambda given, answer: [{"success": True}])) == [{"success": True}]
    with pytest.raises(NoTemplate, match="computes the items"):
        of(lambda given, answer: [{"id": answer["id"][1:]}])


def test_value_that_was_not_recorded_is_refused() -> None:
    template = inferred(EXPLAINED["a constant by a parameter"])
    with pytest.raises(Unrecorded, match="for kind = 'atlas' is not known"):
        make(template.requests[0], {**CASES[0], "kind": "atlas"})


def page(number: int, *, is_last: bool = False) -> dict[str, Any]:
    return {"books": [{"id": f"a{number}_id"}]} | ({} if is_last else {"next": f"a{number}_next"})


def paged(parameters: Mapping[str, Any], title: str) -> Case:
    """A case of code that asks for all pages with ``quick``, otherwise for one."""
    pages = [page(0), page(1), page(2, is_last=True)] if parameters["quick"] else [page(0)]
    sent = [{}, {"cursor": "a0_next"}, {"cursor": "a1_next"}][: len(pages)]
    requests = [
        RecordedRequest(method="GET", url=f"{BASE}/books", query={"q": parameters["title"], **each}) for each in sent
    ]
    return Case(
        case=title, parameters=dict(parameters), values=named(parameters), requests=tuple(requests),
        answers=tuple(pages), withheld=((), (), ("next",))[: len(pages)],
        items=tuple(each for item in pages for each in item["books"]), secrets=SECRETS,
    )  # fmt: skip


def test_pages_are_followed_as_far_as_the_api_has_some() -> None:
    template = infer([paged(given, title) for title, given in zip(PAGED, CASES, strict=True)], BASE)
    sent: list[Made] = []

    def send(made: Made) -> Any:
        sent.append(made)
        return page(len(sent), is_last=len(sent) == 5)

    assert carry_out(template, {**CASES[0], "quick": True}, send) == [{"id": f"a{number}_id"} for number in range(1, 6)]
    assert [made.query.get("cursor") for made in sent] == [None, "a1_next", "a2_next", "a3_next", "a4_next"]
    sent.clear()
    assert carry_out(template, CASES[0], send) == [{"id": "a1_id"}]


def with_file(parameters: Mapping[str, Any], title: str, decides: Callable[[Mapping[str, Any]], bool]) -> Case:
    """A case of code that sends a second request only if *decides* says so."""
    answers: list[Any] = [{"id": f"a0{title}_id"}, {"file": f"a1{title}_file"}]
    urls = [f"{BASE}/books", f"{BASE}/files/a0{title}_id"]
    number = 2 if decides(parameters) else 1
    return Case(
        case=title, parameters=dict(parameters), values=named(parameters), answers=tuple(answers[:number]),
        requests=tuple(RecordedRequest(method="GET", url=url) for url in urls[:number]), secrets=SECRETS,
        items=(answers[number - 1],),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["quick", "due"])
def test_request_that_one_parameter_decides_is_sent_only_then(name: str) -> None:
    """`quick` is a boolean that a case changes alone; `due` is the only parameter that is filled in the same cases."""
    titles, cases = PAGED, [dict(given) for given in CASES]
    if name == "due":
        titles = ("plain", "several", "all")
        cases = [{**given, "quick": False, "more": {}, "words": "w", "tags": {}} for given in cases]
    pairs = zip(titles, cases, strict=True)
    template = infer([with_file(given, title, lambda given: bool(given[name])) for title, given in pairs], BASE)
    full, empty = ("2027-01-01", "") if name == "due" else (True, False)
    for value, number in ((full, 2), (empty, 1)):
        by_template, by_code = both(
            template, {**CASES[0], name: value}, lambda made: {"id": made.path, "file": made.path}
        )
        assert by_code == by_template
        assert [made.path for made in by_code[:-1]] == ["/books", "/files/%2Fbooks"][:number]
        assert ["/books", "/files/%2Fbooks"][number - 1] in str(by_code[-1])


def test_request_that_several_parameters_may_decide_gets_no_template() -> None:
    pairs = zip("abc", CASES, strict=True)
    cases = [with_file(given, title, lambda given: bool(given["more"])) for title, given in pairs]
    with pytest.raises(NoTemplate, match="depends on several parameters"):
        infer(cases, BASE)


def linked(parameters: Mapping[str, Any], title: str) -> Case:
    """A case of code that follows the addresses that its answers name, of a key with a dot."""
    links = [f"{BASE}/a{number}_next" for number in range(2)]
    answers: list[Any] = [
        {"value": [{"id": f"a{number}_id"}], "@odata.nextLink": link} for number, link in enumerate(links)
    ]
    answers.append({"value": [{"id": "a2_id"}]})
    urls = [f"{BASE}/books/{parameters['kind']}", *links]
    return Case(
        case=title, parameters=dict(parameters), values=named(parameters), answers=tuple(answers),
        requests=tuple(RecordedRequest(method="GET", url=url) for url in urls), secrets=SECRETS,
        withheld=((), (), ("@odata.nextLink",)), items=tuple(each for item in answers for each in item["value"]),
    )  # fmt: skip


def test_pages_are_followed_by_the_addresses_that_answers_name() -> None:
    template = infer([linked(given, title) for title, given in zip(TITLES, CASES, strict=True)], BASE)
    links = {"@odata.nextLink": "https://api.example/next?page=2"}
    for carry in (carry_out, run_code):
        sent: list[str] = []

        def send(made: Made, sent: list[str] = sent) -> Any:
            sent.append(made.path)
            return {"value": [len(sent)], **(links if len(sent) == 1 else {})}

        assert carry(template, CASES[0], send) == [1, 2]
        assert sent == ["/books/novel", "https://api.example/next?page=2"]


def test_api_that_always_names_a_next_page_is_not_asked_without_end() -> None:
    template = infer([paged(given, title) for title, given in zip(PAGED, CASES, strict=True)], BASE)
    with pytest.raises(ValueError, match="named a next page 10,000 times"):
        carry_out(template, {**CASES[0], "quick": True}, lambda _: page(0))


def load_writer() -> Any:
    """Return the module of the skill that writes code from templates."""
    place = packaged_path("skills") / "node-scaffold" / "scripts" / "operations.py"
    spec = importlib.util.spec_from_file_location("writer", place)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WRITER = load_writer()


def run_code(template: OperationTemplate, parameters: Mapping[str, Any], send: Callable[[Made], Any]) -> list[Any]:
    """Carry out an operation by the code that is written of its template."""
    code = WRITER.code_of(Operation(key="run", template=template), "Do it")
    known = {name: getattr(shaping, name) for name in WRITER.names_used(code)}
    scope: dict[str, Any] = {**known, "Any": Any, "Send": Any, "Told": str}
    scope["credential"] = {"token": "c_token"}.__getitem__
    exec(code, scope)

    def send_parts(method: str, path: str, **sent: Any) -> Any:
        way = next((each for each in ("body", "form", "multipart", "data") if sent.get(each)), "")
        encoding = "json" if way == "body" else way
        return send(Made(method, path, sent.get("query") or {}, sent.get("headers") or {}, sent.get(way), encoding))

    return scope["run"](dict(parameters), send_parts)


def both(template: OperationTemplate, given: Mapping[str, Any], send: Callable[[Made], Any]) -> list[list[Any]]:
    """Return what the template and its code send, and their items."""
    found: list[list[Any]] = []
    for carry, extra in ((carry_out, {CREDENTIALS: {"token": "c_token"}}), (run_code, {})):
        sent: list[Any] = []

        def note(made: Made, sent: list[Any] = sent) -> Any:
            sent.append(made)
            return send(made)

        sent.append(carry(template, {**given, **extra}, note))
        found.append(sent)
    return found


@pytest.mark.parametrize("name", list(EXPLAINED))
def test_code_sends_what_its_template_sends(name: str) -> None:
    template = inferred(EXPLAINED[name])
    for given_to in (
        *CASES,
        {"title": 'a"\\ {}\n', "kind": "novel", "words": "", "more": {}, "limit": 1, "tags": {}, "due": ""},
    ):
        by_template, by_code = both(template, given_to, lambda _: {"id": 7})
        assert by_code == by_template


def test_code_follows_pages_as_its_template_does() -> None:
    template = infer([paged(given, title) for title, given in zip(PAGED, CASES, strict=True)], BASE)
    for quick in (True, False):
        by_template, by_code = both(
            template, {**CASES[0], "quick": quick}, lambda made: page(1, is_last="cursor" in made.query)
        )
        assert by_code == by_template
        assert len(by_code) == (3 if quick else 2)


NAME = st.sampled_from(["a", "b", "c"])
VALUE: st.SearchStrategy[Value] = st.one_of(
    st.builds(Taken, name=st.sampled_from(["title", "more.note", f"{CREDENTIALS}.token"])),
    st.builds(Constant, constant=st.sampled_from(["fixed", 2, None])),
    st.builds(Text, pattern=st.sampled_from(["x {}", "{}!"]), names=st.sampled_from([("title",), ("more.note",)])),
)
OBJECT: st.SearchStrategy[Value] = st.builds(ObjectValue, fields=st.dictionaries(NAME, VALUE, min_size=1))


@given(OBJECT, st.one_of(OBJECT, st.none()))
def test_every_template_is_inferred_from_what_it_makes(body: Value, query: Value | None) -> None:
    template = RequestTemplate(method="POST", path=Address(pattern="/books/{title}"), query=query, body=body)

    def send(parameters: Mapping[str, Any]) -> dict[str, Any]:
        made = make(template, {**parameters, CREDENTIALS: {"token": "c_token"}})
        return {"url": f"{BASE}{made.path}", "query": made.query, "body": made.body}

    found = inferred(send)
    whole = OperationTemplate(requests=(template,))
    by_template, by_code = both(whole, CASES[1], lambda _: {"id": 7})
    assert by_code == by_template
    for number, parameters in enumerate(CASES):
        made = make(found.requests[0], {**parameters, CREDENTIALS: {"token": "c_token"}})
        assert {"url": f"{BASE}{made.path}", "query": made.query, "body": made.body} == send(parameters), number


@pytest.mark.parametrize(
    ("urls", "base"),
    [
        ([], ""),
        (["https://a.example/v1/x", "https://a.example/v1/y/1"], "https://a.example/v1"),
        (["https://a.example/v1/x", "https://a.example/v2/x", "https://b.example/z"], "https://a.example"),
        (["https://[0/x", "https://a.example/x"], "https://a.example"),
        (["nothing"], ""),
    ],
)
def test_common_base_is_of_the_most_frequent_host(urls: list[str], base: str) -> None:
    assert common_base(urls) == base
