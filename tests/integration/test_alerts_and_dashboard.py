"""The alert rules for Prometheus and the dashboard for Grafana ask for metrics and labels that are exported."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from fireswarm.api.routes.metrics import ProcessHealth
from fireswarm.client import Swarm
from fireswarm.contracts.swarm.task import StatusReason, TaskStatus
from fireswarm.llm.spend import Spend, StoreLedger
from tests.support.api import open_api
from tests.support.swarm import SwarmRig
from tests.support.working import with_skills, working

pytestmark = pytest.mark.anyio

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
RULES, DASHBOARD = REFERENCE / "fireswarm.rules.yml", REFERENCE / "fireswarm.dashboard.json"

TOKEN = re.compile(
    r"""\s*(?:
    (?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*) | (?P<range>\[\d+[smhd]\]) | (?P<number>\d+(?:\.\d+)?) | (?P<text>"[^"\\]*")
    | (?P<open>[({]) | (?P<close>[)}]) | (?P<comma>,) | (?P<sign>=~|!~|!=|==|>=|<=|[=<>+*/-])
    )""",
    re.VERBOSE,
)
"""A token of an expression, of those that the files use."""
FUNCTIONS = {"sum", "absent", "rate", "increase", "delta"}
WORDS = {"and", "or", "unless", "on", "by"}
CLOSED_BY = {"(": ")", "{": "}"}
OF_PROMETHEUS = {"instance", "job"}
"""Labels that Prometheus adds to what it scrapes."""


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"] for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    return json.loads(DASHBOARD.read_text(encoding="utf-8"))["panels"]


def expressions() -> Iterator[tuple[str, str, str]]:
    """Yield the expressions of both files: where it is, the expression, and the texts that use its labels."""
    for rule in rules():
        yield rule["alert"], rule["expr"], " ".join(rule["annotations"].values())
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"], target["legendFormat"]


def tokens(expression: str) -> list[tuple[str, str]]:
    """Read an expression; fails for what Prometheus would not read: unknown tokens, and brackets that do not match."""
    found: list[tuple[str, str]] = []
    place, opened = 0, list[str]()
    while place < len(expression.rstrip()):
        match = TOKEN.match(expression, place)
        assert match is not None, f"cannot read {expression[place:]!r} of {expression!r}"
        kind, text = str(match.lastgroup), match.group(str(match.lastgroup))
        if kind == "open":
            opened.append(CLOSED_BY[text])
        elif kind == "close":
            assert opened and opened.pop() == text, expression
        else:
            is_operator = kind in ("sign", "comma", "range") or text in WORDS
            follows = bool(found) and found[-1][0] in ("name", "number", "text") and found[-1][1] not in WORDS
            assert is_operator or not follows, f"no operator before {text!r} of {expression!r}"
        found.append((kind, text))
        place = match.end()
    assert not opened and found and found[-1][0] not in ("sign", "comma"), expression
    return found


def metrics_of(expression: str) -> tuple[set[str], set[str]]:
    """Return the metrics and the labels that an expression names."""
    found = tokens(expression)
    metrics, labels, grouping = set[str](), set[str](), False
    for number, (kind, text) in enumerate(found):
        grouping = (grouping or text in ("by", "on")) and text != ")"
        if kind != "name" or text in WORDS:
            continue
        after = found[number + 1][1] if number + 1 < len(found) else ""
        if text in FUNCTIONS:
            assert after in ("(", "by"), expression
        elif grouping or after in ("=", "!=", "=~", "!~"):
            labels.add(text)
        else:
            metrics.add(text)
    return metrics, labels


@pytest.mark.parametrize(
    "broken", ["sum(a", "a > ", "a b", "a{b='c'}", "sum by (a) a)", "a[5]", 'a{b="c"', "5 6", "a # b"]
)
def test_expression_with_a_fault_is_noticed(broken: str) -> None:
    with pytest.raises(AssertionError):
        tokens(broken)


async def read_exported(swarm: SwarmRig) -> dict[str, set[str]]:
    """Return the labels of every metric of a live API and of a role process, by the names of their samples."""
    await Swarm(swarm.core).budget("day", usd=1.0)
    ledger = StoreLedger(swarm.store, swarm.clock, "s1", "scout-1")
    await ledger.add(Spend(calls=2, tokens=30, usd=0.85))
    await swarm.store.commit(ledger.writes())
    health = ProcessHealth(swarm.store)
    async with working(with_skills(swarm)) as worker, open_api(swarm) as api:
        await swarm.clock.settle()
        health.worker = worker
        process = await api_of(health)
        text = (await api.call("GET", "/metrics")).text
    families = [*text_string_to_metric_families(text), *text_string_to_metric_families(process)]
    found: dict[str, set[str]] = {}
    for sample in (sample for family in families for sample in family.samples):
        found.setdefault(sample.name, set()).update(sample.labels)
        if sample.name == "fireswarm_budget_spent_ratio":
            assert (sample.labels["scope"], sample.value) == ("day", pytest.approx(0.85))
    assert found.keys() >= {family.name for family in families if family.type == "gauge"}, "each has a sample"
    return found


async def api_of(health: ProcessHealth) -> str:
    """Return the figures of a role process."""
    transport = httpx2.ASGITransport(health.make_application())
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as client:
        return (await client.get("/metrics")).text


async def test_every_expression_asks_for_metrics_and_labels_that_are_exported(swarm: SwarmRig) -> None:
    exported = await read_exported(swarm)
    used = set[str]()
    for place, expression, texts in expressions():
        metrics, labels = metrics_of(expression)
        assert metrics and metrics <= exported.keys(), f"{place}: {metrics - exported.keys()}"
        known = set[str]().union(*(exported[metric] for metric in metrics)) | OF_PROMETHEUS
        shown = set(re.findall(r"\$labels\.(\w+)", texts)) | set(re.findall(r"\{\{(\w+)\}\}", texts))
        assert labels | shown <= known, f"{place}: {labels | shown}"
        used |= metrics
    assert used == exported.keys(), "the dashboard shows every metric"


async def test_values_of_labels_exist() -> None:
    known = {"reason": {reason.value for reason in StatusReason}, "status": {status.value for status in TaskStatus}}
    for place, expression, _ in expressions():
        for label, values in re.findall(r'(\w+)[=!]~?"([^"]*)"', expression):
            assert set(values.split("|")) <= known[label], place


def test_alerts_say_what_to_do_and_have_one_name_each() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(set(names)) == len(names) >= 10
    for rule in rules():
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}, rule["alert"]
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert rule["annotations"]["summary"] and "swarm " in rule["annotations"]["action"]
        assert re.fullmatch(r"\d+m", rule.get("for", "1m"))


def test_panels_do_not_overlap_and_use_the_chosen_source() -> None:
    board = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    assert [variable["name"] for variable in board["templating"]["list"]] == ["datasource"]
    cells = list[tuple[int, int]]()
    for panel in panels():
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells += [(x, y) for x in range(place["x"], place["x"] + place["w"])
                  for y in range(place["y"], place["y"] + place["h"])]  # fmt: skip
    assert len(set(cells)) == len(cells)
    assert len({panel["id"] for panel in panels()}) == len(panels())


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool, of Prometheus")
def test_promtool_finds_no_fault_in_the_alert_rules() -> None:
    done = subprocess.run(["promtool", "check", "rules", RULES], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
