"""Judge a node from outside: the code makes calls in a process that has no expectation to copy; this one compares.

The code under test can neither see nor write the verdict. Whatever it does to its own process, it passes only by
sending the requests that are expected of it.
"""

from __future__ import annotations

import ast
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from fireswarm import errors, pipelines, read_regular_file

from . import results

HOST = Path(__file__).parents[1] / "references" / "host.py"
CALLS, REPLIES = "calls.json", "replies.json"
MAX_SHOWN_CHARS = 300
KEPT = ("PATH", "LANG", "LC_ALL", "SYSTEMROOT")
"""Environment variables that are passed to generated code and its tests."""

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
"""One of version 4, drawn at random."""

SAME_UUID = "it sends the same UUID for several inputs"

EMPTY: dict[str, Any] = {"query": {}, "headers": {}, "body": None, "form": None, "multipart": None, "data": None}


class Expected(NamedTuple):
    """A call, the name of its test, and what is expected of it, which stays here."""

    test: str
    call: dict[str, Any]
    kind: str
    case: Mapping[str, Any]
    base: str = ""


def read_expected(project: Mapping[str, str]) -> list[Expected]:
    """Return the calls that the files of the tests expect: recorded, documented, and told by the schema."""
    kinds = {"recorded": results.REPLAY, "documented": results.DOCUMENTED, "told": results.TOLD}
    found: list[Expected] = []
    for path in sorted(project):
        name, _, kind = path.removeprefix("tests/").removesuffix(".json").rpartition("_")
        if not (path.startswith("tests/") and path.endswith(".json")) or kind not in kinds:
            continue
        content = json.loads(project[path])
        for case in content["cases"]:
            call = {"package": f"nodes.{name}", "operation": case["operation"], "parameters": case["parameters"]}
            call |= {"answers": case.get("answers", []), "credential": content.get("credential", {})}
            call |= {"refused": case.get("refused", 0)}
            call["otherwise"] = {"answer": 1} if kind == "documented" else {} if kind == "told" else None
            test = results.case_name(case["operation"], case["case"], kinds[kind])
            found.append(Expected(test, call, kind, case, content.get("base", "")))
    return found


def replay(
    project: Mapping[str, str], expected: list[Expected], folder: Path, seconds: float, confinement: str
) -> dict[str, str]:
    """Let the node make the expected calls; return why each one differs, or "", by the name of its test."""
    found = replay_each(project, expected, folder, seconds, confinement) if expected else []
    return {each.test: why for each, why in zip(expected, found, strict=True)}


def replay_each(
    project: Mapping[str, str], expected: list[Expected], folder: Path, seconds: float, confinement: str
) -> list[str]:
    """Let the node make the expected calls in *folder*, without its tests; return why each one differs, or ""."""
    files = {path: text for path, text in project.items() if path.startswith("nodes/")}
    files |= {HOST.name: HOST.read_text(encoding="utf-8"), CALLS: json.dumps([each.call for each in expected])}
    pipelines.lay_out(files, folder)
    command = [sys.executable, "-B", str(folder / HOST.name), str(folder / CALLS), str(folder / REPLIES)]
    view = pipelines.View(folder, writable=True, protects=False)
    path = {"PYTHONPATH": str(folder)}
    pipelines.run_confined(command, view, environment() | path, seconds, confinement=confinement)
    return compare(expected, folder)


def environment() -> dict[str, str]:
    """Return the environment of generated code: it gets no keys."""
    kept = {name: value for name, value in os.environ.items() if name in KEPT}
    return kept | {"PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}


def compare(expected: list[Expected], folder: Path) -> list[str]:
    """Return why each reply is not as expected, or ""."""
    try:
        replies: Any = json.loads(read_regular_file(folder / REPLIES, results.MAX_BYTES, follow=False))
    except (OSError, ValueError, RecursionError, errors.InvalidInput) as error:
        return [f"the node did not answer: {error}"[:MAX_SHOWN_CHARS]] * len(expected)
    if not isinstance(replies, list) or len(replies) != len(expected):
        return ["the node did not answer each call once"] * len(expected)
    found = [difference(each, reply)[:MAX_SHOWN_CHARS] for each, reply in zip(expected, replies, strict=True)]
    drawn = Counter(uuid for each, reply in zip(expected, replies, strict=True) for uuid in _drawn(each, reply))
    return [
        why or (SAME_UUID if any(drawn[uuid] > 1 for uuid in _drawn(each, reply)) else "")
        for each, reply, why in zip(expected, replies, found, strict=True)
    ]


def difference(expected: Expected, reply: Any) -> str:
    """Return how a reply differs from what is expected, or ""."""
    if not isinstance(reply, dict) or not isinstance(reply.get("sent"), list):
        return "the node did not answer"
    sent, made, case = reply["sent"], reply.get("made"), expected.case
    is_failing = bool(case.get("refused")) and case["items"] is None
    if is_failing and "made" in reply:
        return "the node goes on after an answer that is an error"
    if "made" not in reply and not (is_failing and str(reply.get("error")).startswith("ApiError: ")):
        return f"the node raised {reply.get('error', 'nothing')}"
    if not all(isinstance(each, dict) and isinstance(each.get("path"), str) for each in sent):
        return "the node did not say what it sent"
    match expected.kind:
        case "documented":
            return _unlike([EMPTY | each for each in sent], [case["request"]]) or _unlike(made, {"answer": 1})
        case "recorded":
            listed = made if isinstance(made, list) else [made]
            known = _known(expected)
            unlike = _unlike(
                _without_drawn([_as_recorded(each, expected.base) for each in sent], known),
                _without_drawn(case["requests"], known),
            )
            return unlike or ("" if case["items"] is None else _unlike(listed, case["items"]))
        case _:
            return _unlike_told(sent, case)


def _unlike(given: Any, wanted: Any) -> str:
    return "" if given == wanted else f"{json.dumps(given)} instead of {json.dumps(wanted)}"


def _known(expected: Expected) -> str:
    """Return what a call was given: a UUID in it was not drawn by the node."""
    return json.dumps([expected.call["parameters"], expected.call["answers"], expected.call["credential"]])


def _drawn(expected: Expected, reply: Any) -> set[str]:
    """Return the UUIDs that a call drew at random."""
    if expected.kind != "recorded" or not isinstance(reply, dict):
        return set()
    known = _known(expected)
    return {uuid for uuid in UUID.findall(json.dumps(reply.get("sent"))) if uuid not in known}


def _without_drawn(requests: Any, known: str) -> Any:
    """Return requests with {uuid} in the place of each UUID that neither input nor answers have: the node drew it."""
    return json.loads(UUID.sub(lambda found: found[0] if found[0] in known else "{uuid}", json.dumps(requests)))


def _as_recorded(request: Mapping[str, Any], base: str) -> dict[str, Any]:
    path = request["path"]
    given = next((each for each in ("form", "multipart", "data", "body") if request.get(each)), "")
    path = path.removeprefix(base) if path.startswith(f"{base}/") else path
    made = {"method": request.get("method"), "path": path, "query": request.get("query") or {}}
    made |= {"headers": request.get("headers") or {}, "body": request.get(given)}
    return made | {"encoding": "json" if given == "body" else given}


def _unlike_told(sent: list[dict[str, Any]], case: Mapping[str, Any]) -> str:
    if unlike := _unlike([[each.get("method"), each["path"]] for each in sent], [[case["method"], case["path"]]]):
        return unlike
    for place in ("query", "body"):
        given = sent[0].get(place)
        if lost := sorted(set(case[place]) - set(given if isinstance(given, dict) else {})):
            return f"{', '.join(lost)} not in {place}"
    return ""


def test_functions(project: Mapping[str, str]) -> Iterator[str]:
    """Yield the names of all tests that are written in the project, as its files stand before any of them runs."""
    for path, text in sorted(project.items()):
        if path.startswith("tests/") and Path(path).name.startswith("test_") and path.endswith(".py"):
            try:
                tree = ast.parse(text)
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue  # a fault of the code, which is told elsewhere
            names = (each.name for each in tree.body if isinstance(each, ast.FunctionDef))
            yield from (name for name in names if name.startswith("test_"))
