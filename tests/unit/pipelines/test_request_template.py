"""Templates of requests are inferred from recordings, and only if they repeat all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fireswarm.pipelines import ANSWERS, CREDENTIALS, NoTemplate, OperationTemplate, common_base, infer
from fireswarm.pipelines.node.recording import Case, RecordedRequest
from fireswarm.pipelines.node.request_template import RequestPart, RequestTemplate, items_of, make

BASE = "https://api.example"
SECRETS = {"c_token": "token"}
NAMES = ("title", "kind", "more", "limit")

Send = Callable[[Mapping[str, Any]], dict[str, Any]]


def case(title: str, parameters: Mapping[str, Any], send: Send, answer: Any = None, items: Any = None) -> Case:
    """One recorded case of code that sends *send* of its parameters. Its texts are made-up values."""
    values = {text: name for name, text in parameters.items() if isinstance(text, str) and text}
    values |= {
        text: f"{name}.{inner}"
        for name, group in parameters.items()
        if isinstance(group, Mapping)
        for inner, text in group.items()
    }
    request = RecordedRequest.model_validate({"method": "POST", "url": f"{BASE}/books", **send(parameters)})
    return Case(
        case=title, parameters=dict(parameters), values=values, requests=(request,), answers=(answer,),
        items=items, secrets=SECRETS,
    )  # fmt: skip


CASES: tuple[Mapping[str, Any], ...] = (
    {"title": "s1title", "kind": "novel", "more": {}, "limit": 7},
    {"title": "s2title", "kind": "guide", "more": {"note": "s3note", "pages": "s4pages"}, "limit": 9},
    {"title": "s5title", "kind": "novel", "more": {"note": "s6note"}, "limit": 0},
)


def inferred(send: Send) -> OperationTemplate:
    return infer([case(str(number), parameters, send) for number, parameters in enumerate(CASES)], BASE)


EXPLAINED: dict[str, Send] = {
    "a parameter": lambda given: {"body": {"name": given["title"]}},
    "a constant": lambda given: {"body": {"name": given["title"], "version": 2}},
    "within a text": lambda given: {"body": {"ref": f"book:{given['title']}!"}},
    "in the address": lambda given: {"url": f"{BASE}/books/{given['title']}/pages"},
    "a nested name": lambda given: {"body": {"a": {"b": {"c": given["title"]}}}},
    "a whole group": lambda given: {"body": {"name": given["title"], "more": given["more"]}},
    "a part of a group, if it is there": lambda given: {
        "body": {"name": given["title"]} | ({"note": given["more"]["note"]} if "note" in given["more"] else {})
    },
    "only if it is not empty": lambda given: {"query": {"limit": given["limit"]} if given["limit"] else {}},
    "a default": lambda given: {"query": {"limit": given["limit"] or 50}},
    "the credential": lambda given: {"headers": {"authorization": "Bearer c_token"}, "body": {"name": given["title"]}},
    "a form": lambda given: {"body": {"name": given["title"]}, "encoding": "form"},
    "another host": lambda given: {"url": f"https://upload.example/{given['title']}"},
}

COMPUTED: dict[str, Send] = {
    "upper case": lambda given: {"body": {"name": given["title"].upper()}},
    "a sum": lambda given: {"body": {"limit": given["limit"] + 1}},
    "a list of words": lambda given: {"body": {"tags": [given["title"]]}},
    "an address by a parameter": lambda given: {"url": f"{BASE}/{'books' if given['kind'] == 'novel' else 'guides'}"},
    "a method by a parameter": lambda given: {"method": "PUT" if given["kind"] == "guide" else "POST"},
    "a constant by a parameter": lambda given: {"body": {"code": 1 if given["kind"] == "novel" else 2}},
    "two parameters in one text": lambda given: {"body": {"name": f"{given['title']} ({given['kind']})"}},
    "a name that is a parameter": lambda given: {"body": {given["title"]: True}},
    "several parts": lambda given: {"body": {"name": given["title"]}, "encoding": "multipart"},
}


@pytest.mark.parametrize("name", list(EXPLAINED))
def test_template_repeats_what_was_sent(name: str) -> None:
    template = inferred(EXPLAINED[name])
    assert template.cases == len(CASES)
    other = {"title": "Über uns", "kind": "guide", "more": {"note": "n"}, "limit": 3}
    sent = EXPLAINED[name](other)
    given_to = {**other, CREDENTIALS: {"token": "c_token"}}
    made = make(template.requests[0], given_to)
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
    assert template.requests[1].parts[0].parameter == f"{ANSWERS}.0.copies.1.id"
    assert (template.items, items_of(template, [None, {"id": 5}])) == ("1", [{"id": 5}])


def test_items_that_the_code_makes_get_no_template() -> None:
    answer = {"id": "a_id"}
    with pytest.raises(NoTemplate, match="computes the items"):
        infer([case("plain", CASES[0], EXPLAINED["a parameter"], answer, ({"ID": "a_id"},))], BASE)
    fixed = infer([case("plain", CASES[0], EXPLAINED["a parameter"], answer, ({"success": True},))], BASE)
    assert fixed.fixed_items == ({"success": True},)


NAME = st.sampled_from(["a", "b", "c"])
PART = st.builds(
    RequestPart,
    place=st.sampled_from(["query", "header", "body"]),
    name=st.tuples(NAME),
    parameter=st.sampled_from(["", "title", "more.note", f"{CREDENTIALS}.token"]),
    constant=st.sampled_from(["fixed", 2, None]),
    pattern=st.sampled_from(["{}", "x {}"]),
)


@given(st.lists(PART, unique_by=lambda part: (part.place, part.name), min_size=1))
def test_every_template_is_inferred_from_what_it_makes(parts: list[RequestPart]) -> None:
    template = RequestTemplate(method="POST", path="/books/{title}", parts=tuple(parts), has_body=True)

    def send(parameters: Mapping[str, Any]) -> dict[str, Any]:
        made = make(template, {**parameters, CREDENTIALS: {"token": "c_token"}})
        headers = {name: str(value) for name, value in made.headers.items()}
        return {"url": f"{BASE}{made.path}", "query": made.query, "headers": headers, "body": made.body}

    found = inferred(send)
    for number, parameters in enumerate(CASES):
        made = make(found.requests[0], {**parameters, CREDENTIALS: {"token": "c_token"}})
        assert {"url": f"{BASE}{made.path}", "body": made.body} == {
            name: value for name, value in send(parameters).items() if name in ("url", "body")
        }, number


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
