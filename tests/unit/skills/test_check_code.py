"""Static checks of a skill's code and of its conversation contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from fireswarm.errors import ConfigError
from fireswarm.skills.checks.code import check_source
from fireswarm.skills.checks.pack import check_file, check_paths
from fireswarm.skills.packs.terms import read_terms

WRONG = [
    ("async def run(request): ...", 1, "async-code"),
    ("def run(r):\n    return [x async for x in r]", 2, "async-code"),
    ("import asyncio\ndef run(r):\n    asyncio.run(r)", 3, "event-loop"),
    ("from asyncio import get_event_loop as loop\nloop()", 2, "event-loop"),
    ("import asyncio as a\na.new_event_loop().run_until_complete(1)", 2, "event-loop"),
    ("import anyio\nanyio.run(main)", 2, "event-loop"),
    ("import threading\nt = threading.Thread(target=f)\nt.start()", 2, "thread-outlives"),
    ("from threading import Thread\nThread(target=f, daemon=True).start()", 2, "thread-outlives"),
    ("from concurrent.futures import ThreadPoolExecutor\np = ThreadPoolExecutor()", 2, "thread-outlives"),
    ("import requests\nrequests.get('u')", 2, "http-timeout"),
    ("import requests as r\nr.post('u', timeout=None)", 2, "http-timeout"),
    ("from requests import get\nget('u')", 2, "http-timeout"),
    ("import requests\nwith requests.Session() as s:\n    s.get('u')", 3, "http-timeout"),
    ("import httpx\nhttpx.get('u')", 2, "http-timeout"),
    ("import httpx\nc = httpx.Client()\nc.get('u')", 3, "http-timeout"),
    ("from urllib.request import urlopen\nurlopen('u')", 2, "http-timeout"),
    ("import urllib.request\nurllib.request.urlopen('u')", 2, "http-timeout"),
    ("def run(:", 1, "code-syntax"),
]
DETERMINISTIC = """---
name: reader
description: Reads.
metadata:
  entry: scripts/skill.py
  execution_mode: {mode}
---
"""

RIGHT = [
    "import threading\nt = threading.Thread(target=f)\nt.start()\nt.join()",
    "import threading\nts = [threading.Thread(target=f) for _ in range(3)]\nfor t in ts:\n    t.join()",
    "from concurrent.futures import ThreadPoolExecutor\nwith ThreadPoolExecutor() as pool:\n    pool.map(f, [])",
    "import requests\nrequests.get('u', timeout=5)",
    "import httpx\nc = httpx.Client(timeout=5)\nc.get('u')",
    "from urllib.request import urlopen\nurlopen('u', None, 5)",
    "class Loop:\n    def get(self): ...\nLoop().get()\n', '.join(['a'])",
    "d = {}\nd.get('x')",
]


@pytest.mark.parametrize(("code", "line", "rule"), WRONG)
def test_violations_are_reported_by_line_and_rule(tmp_path: Path, code: str, line: int, rule: str) -> None:
    file = tmp_path / "skill.py"
    file.write_text(code)
    assert (line, rule) in [(found[0], found[1]) for found in check_source(file)]


@pytest.mark.parametrize("code", RIGHT)
def test_code_without_violations_passes(tmp_path: Path, code: str) -> None:
    file = tmp_path / "skill.py"
    file.write_text(code)
    assert check_source(file) == []


def card(folder: Path, more: str) -> Path:
    path = folder / "talk" / "SKILL.md"
    (path.parent / "scripts").mkdir(parents=True, exist_ok=True)
    (path.parent / "scripts" / "skill.py").write_text("import asyncio\n\nasyncio.run(None)\n")
    head = "---\nname: talk\ndescription: Talks.\nmetadata:\n  entry: scripts/skill.py\n"
    path.write_text(head + more + "---\n# Talk\n")
    return path


FORMS = (
    "interaction_outcomes:\n  allowed_intermediate_states: [paused]\n  max_turns: 4\n",
    "  interaction_outcomes:\n    allowed_intermediate_states: [paused]\n    max_turns: 4\n",
    "  interaction_outcomes: |\n    allowed_intermediate_states: [paused]\n    max_turns: 4\n",
)


@pytest.mark.parametrize("form", FORMS)
def test_contract_can_be_read_in_each_of_its_forms(tmp_path: Path, form: str) -> None:
    terms = read_terms(card(tmp_path, form))
    assert terms is not None and terms.interaction_outcomes.max_turns == 4
    assert [state.value for state in terms.interaction_outcomes.allowed_intermediate_states] == ["paused"]


@pytest.mark.parametrize(
    ("more", "line", "rule"),
    [
        ("interaction_outcomes:\n  max_turns: 21\n", 6, "interaction-outcomes"),
        ("interaction_outcomes:\n  allowed_intermediate_states: [done]\n", 6, "interaction-outcomes"),
        ("  version: '1'\nstate_persistence: some\n", 7, "state-persistence"),
        ("input_request_jsonschema: {type: nothing}\n", 6, "input-jsonschema"),
        ("  input_request_jsonschema: |\n    {type: nothing}\n", 6, "input-jsonschema"),
        ("interaction_outcomes: {allowed_intermediate_states: [paused]}\nstate_persistence: none\n", 6, "conversation"),
    ],
)
def test_invalid_contract_is_reported(tmp_path: Path, more: str, line: int, rule: str) -> None:
    path = card(tmp_path, more)
    assert (line, rule) in [(fault.line, fault.rule) for fault in check_file(path) if fault.path == path]
    if rule != "input-jsonschema":
        with pytest.raises(ConfigError, match="invalid conversation contract"):
            read_terms(path)


def test_fault_in_code_names_the_code_file(tmp_path: Path) -> None:
    [fault] = [fault for fault in check_file(card(tmp_path, FORMS[2])) if fault.rule == "event-loop"]
    assert (fault.path.name, fault.line) == ("skill.py", 3)


def test_shipped_skills_have_no_faults() -> None:
    assert check_paths([Path(__file__).parents[3] / "skills"]).faults == ()


@pytest.mark.parametrize("line", ["import anthropic", "from google import genai", "import openai.types as t"])
def test_deterministic_skill_that_imports_a_model_sdk_is_reported(tmp_path: Path, line: str) -> None:
    folder = tmp_path / "reader"
    (folder / "scripts").mkdir(parents=True)
    (folder / "scripts" / "skill.py").write_text(f"def run(request):\n    {line}\n")
    for mode, rules in (
        ("deterministic", ["model-in-deterministic"]),
        ("hybrid", []),
        ("sometimes", ["execution-mode"]),
    ):
        (folder / "SKILL.md").write_text(DETERMINISTIC.format(mode=mode))
        assert [fault.rule for fault in check_file(folder / "SKILL.md")] == rules
