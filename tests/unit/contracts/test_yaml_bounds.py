"""YAML that expands, contains itself or nests deeply is one line of error wherever it is read, at once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from fireswarm.contracts.base import is_yes
from fireswarm.contracts.frontmatter import MAX_DEPTH, check_yaml, load_yaml
from fireswarm.errors import ConfigError, FireswarmError
from fireswarm.settings import load_agent_settings
from fireswarm.settings.trust import VARIABLE, trusts_all
from fireswarm.skills.packs.parse import parse
from fireswarm.skills.packs.terms import read_terms
from fireswarm.swarm.records.policy import HandoffPolicy
from fireswarm.swarm.roles.card import load_card
from fireswarm.swarm.submission.plan_review import parse_plan

LEVELS = 10_000
LAUGHS = "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12))])
HOSTILE = {
    "flow sequences": "a: " + "[" * LEVELS,
    "closed flow sequences": "a: " + "[" * LEVELS + "]" * LEVELS,
    "flow maps": "a: " + "{a: " * LEVELS,
    "compact sequences": "a:\n  " + "- " * LEVELS + "x",
    "explicit keys": "? " * LEVELS + "a",
    "indented maps": "\n".join(" " * level + "a:" for level in range(900)),
    "aliases that expand": LAUGHS,
    "merged aliases that expand": LAUGHS.replace("[x]", "{k: v}").replace("[", "{<<: [").replace("]", "]}"),
    "aliases that nest": "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [*a{n - 1}]" for n in range(1, LEVELS))]),
    "a list in itself": "a: &a [*a]",
    "a map in itself": "a: &a {b: *a}",
    "a map as its own key": "&a {*a : 1}",
    "a map merged with itself": "a: &a {<<: *a}",
    "unknown alias": "a: *nothing",
    "long text": "a: " + "x" * 2_000_000,
}


def read_role(path: Path, text: str) -> object:
    path.joinpath("ROLE.md").write_text(f"---\nname: {path.name}\n{text}\n---\nWork.\n")
    return load_card(path / "ROLE.md")


def read_settings(path: Path, text: str) -> object:
    path.joinpath("agent.yaml").write_text(text)
    return load_agent_settings(path / "agent.yaml")


def read_policy(path: Path, text: str) -> object:
    path.joinpath("policy.yaml").write_text(text)
    return HandoffPolicy.load(path / "policy.yaml")


def read_skill_terms(path: Path, text: str) -> object:
    path.joinpath("SKILL.md").write_text(f"---\nname: a\ninput_request_jsonschema: 1\n{text}\n---\nWork.\n")
    read_terms(path / "SKILL.md")
    raise ConfigError("nothing was read of the contract")


def read_plan(_path: Path, text: str) -> object:
    return parse_plan(text)


@pytest.mark.parametrize("read", [read_role, read_settings, read_policy, read_skill_terms, read_plan])
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_yaml_is_one_line_of_error(name: str, read: Callable[[Path, str], object], tmp_path: Path) -> None:
    with pytest.raises(FireswarmError) as refused:
        read(tmp_path, HOSTILE[name])
    assert len(str(refused.value).splitlines()) == 1
    assert len(str(refused.value)) < 2_000


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_frontmatter_of_a_skill_becomes_bounded_text(name: str) -> None:
    parsed = parse(f"---\nname: a\n{HOSTILE[name]}\n---\nWork.\n".encode())
    assert parsed.fields["name"].startswith("a")
    assert len(repr(parsed.fields)) < 200_000


def test_usual_anchors_and_depths_are_read() -> None:
    assert load_yaml("a: &a {x: [1, 2]}\nb: *a\nc: {<<: *a, y: 3}") == {
        "a": {"x": [1, 2]},
        "b": {"x": [1, 2]},
        "c": {"x": [1, 2], "y": 3},
    }
    deep = "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)
    with pytest.raises(yaml.YAMLError):
        check_yaml(deep)
    check_yaml(deep[1:-1])
    with pytest.raises(yaml.YAMLError):
        load_yaml("2026-13-45")


@pytest.mark.parametrize(
    ("value", "meant"),
    [
        (None, False),
        *((no, False) for no in ("", " ", "0", "false", "No", "OFF", "n", "2")),
        ("1", True),
        (" Yes ", True),
    ],
)
def test_environment_variables_say_yes_in_one_way(
    value: str | None, meant: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_yes(value) is meant
    if value is None:
        monkeypatch.delenv(VARIABLE, raising=False)
    else:
        monkeypatch.setenv(VARIABLE, value)
    assert trusts_all() is meant
