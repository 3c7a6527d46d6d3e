"""Parameters of a recorded node are counted in its description: the schema has them, or lists them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fireswarm import pipelines
from fireswarm.settings.packaged import packaged_path
from fireswarm.skills.running.in_child import load_entry

INFER: Any = load_entry(packaged_path("skills") / "schema-infer", Path("scripts/skill.py"))


def prop(name: str, kind: str = "string", **options: Any) -> dict[str, Any]:
    return {"name": name, "type": kind, "displayName": name.title(), **({"displayOptions": options} if options else {})}


def node(
    *properties: dict[str, Any], given: dict[str, Any] | None = None, version: Any = 2, method: str = "GET"
) -> pipelines.RecordedNode:
    choice = prop("operation", "options") | {"options": [{"name": "Get", "value": "get"}]}
    sent = {"method": method, "url": "https://t.example/a", "query": given or {}}
    case = {"case": "all", "parameters": {"operation": "get", **(given or {})}, "requests": [sent], "items": []}
    content = {
        "file": "T.node.js", "class": "T", "version": version, "operations": [{"operation": "get", "cases": [case]}],
        "description": {"name": "t", "properties": [choice, *properties]},
    }  # fmt: skip
    return pipelines.recorded_node(content)


@pytest.mark.parametrize(
    ("options", "is_counted"),
    [
        ({"show": {"operation": ["get", "add"]}}, True),
        ({"show": {"operation": ["add"]}}, False),
        ({"hide": {"operation": ["get"]}}, False),
        ({"hide": {"operation": ["add"], "raw": [True]}}, True),
        ({"show": {"@version": [1]}}, False),
        ({"show": {"@version": [2]}}, True),
        ({"show": {"@version": [{"_cnd": {"gte": 2}}]}}, True),
        ({"show": {"@version": [{"_cnd": {"gt": 2}}]}}, False),
        ({"hide": {"@version": [{"_cnd": {"lte": 2}}]}}, False),
        ({"show": {"@version": [{"_cnd": {"not": 2}}, 2]}}, True),
        ({"show": {"@version": [{"_cnd": {"between": {"from": 1, "to": 3}}}]}}, True),
        ({"show": {"operation": ["get"], "simple": [False]}}, True),
        ({"show": "nonsense"}, True),
    ],
)
def test_parameter_counts_if_the_form_can_show_it(options: dict[str, Any], is_counted: bool) -> None:
    made = node(prop("title", **options))
    assert pipelines.described_parameters(made, made.operations[0]) == ({"title"} if is_counted else set())


def test_what_is_only_shown_or_chooses_the_operation_is_no_parameter() -> None:
    odd: Any = "nonsense"
    made = node(prop("note", "notice"), prop("resource", "options"), prop("odd") | {"displayOptions": odd})
    assert pipelines.described_parameters(made, made.operations[0]) == {"odd"}


def test_parameter_that_no_recorded_input_has_is_listed() -> None:
    reading = INFER.recorded.read(node(prop("title"), prop("raw"), given={"title": "a1_x"}), {}, "made")
    assert reading.parts["parameters"] == pipelines.PartCount(present=2, found=1)
    (listed,) = [each for each in reading.schema().unread if each.part == "parameter"]
    assert listed.name == "get raw" and "no recorded input has it" in listed.reason


def test_hidden_parameter_of_another_operation_does_not_reach_the_schema() -> None:
    """Before, only `show` was looked at."""
    made = node(prop("title", hide={"operation": ["get"]}), given={"title": "a1_x"})
    assert INFER.recorded.read(made, {}, "made").parameters == []


@pytest.mark.parametrize(("method", "is_written"), [("MKCOL", True), ("PROPFIND", True), ("YELL", False)])
def test_method_that_no_template_can_send_loses_no_other_operation(method: str, *, is_written: bool) -> None:
    """Before, a node with one operation of WebDAV could not be read at all."""
    reading = INFER.recorded.read(node(prop("title"), given={"title": "a1_x"}, method=method), {}, "made")
    operation = reading.operations["get"]
    assert (operation.template is not None) is is_written
    assert operation.unexplained == ("" if is_written else "its method YELL is none of HTTP")
