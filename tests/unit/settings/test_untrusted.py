"""Each key of the settings is in one class, and the file of a stranger's folder gets no further than its class."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel

from fireswarm.contracts.llm.chat import ChatMessage, ChatRequest, ToolSpec
from fireswarm.errors import ConfigError
from fireswarm.llm.providers.anthropic import AnthropicModel
from fireswarm.llm.providers.gemini import GeminiModel
from fireswarm.llm.providers.openai import OpenAiModel
from fireswarm.settings import Settings, load_agent_settings, load_found_settings, load_settings
from fireswarm.settings.sample import sample
from fireswarm.settings.trust import STORE_TOKEN, TrustedFiles
from fireswarm.settings.untrusted import FREE, GUARDED, INSIDE, LOWERED, find_class, guarded_keys, sections_of
from tests.support.commands import agent

CLASSES = (FREE, LOWERED, INSIDE, frozenset(GUARDED))


def schema(kind: type[BaseModel], above: str = "") -> Iterator[str]:
    """Yield the dotted key of each value in a file."""
    for name, field in kind.model_fields.items():
        key = f"{above}{field.alias or name}"
        section, is_map = sections_of(field)
        if section is None:
            yield key
        else:
            yield from schema(section, f"{key}.any." if is_map else f"{key}.")


def test_each_key_is_in_one_class_and_each_entry_is_a_key() -> None:
    known = set[str]()
    for key in schema(Settings):
        entry = find_class(key)[1]
        assert sum(entry in each for each in CLASSES) == 1, f"{key} is in no class of settings/untrusted.py, or in two"
        known.add(entry)
    assert frozenset[str]().union(*CLASSES) - known == set(), "entries of keys that are no longer there"


def test_key_without_a_class_is_guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fireswarm.settings.untrusted.FREE", FREE - {"session"})
    assert guarded_keys({"session": "mine"}) == ["session"]
    assert guarded_keys({"session": "default"}) == []


def test_sample_with_all_defaults_needs_no_trust(tmp_path: Path) -> None:
    assert guarded_keys(yaml.safe_load(sample(Settings)), tmp_path) == []


PLACES = ("/etc/x", "~/x", "../x", "a/../../x", "a/../b", "out/x", "dangling/x", "loop/x")
URLS = ("gs://evil/x", "file:///etc/x", "memory://x", "simplecache::gs://evil/x", "github://evil:x@/y", "s3:evil")


@pytest.mark.parametrize("key", sorted(INSIDE))
def test_place_outside_of_the_folder_needs_trust(key: str, tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "out").symlink_to(tmp_path)
    (folder / "dangling").symlink_to(tmp_path / "ghost")
    (folder / "loop").symlink_to(folder / "loop")
    section, _, name = key.partition(".")
    for place in (*PLACES, *URLS, ["a", "../x"], "a\0b"):
        assert guarded_keys({section: {name: place}}, folder) == [key], place
    for place in ("a", "./a/b", ".", str(folder / "a"), ["a", "b"]):
        assert guarded_keys({section: {name: place}}, folder) == [], place
    (tmp_path / "link").symlink_to(folder)
    assert guarded_keys({section: {name: "a/b"}}, tmp_path / "link") == []


OF_A_SWARM = {
    "store: {project: evil-project}": "store.project",
    "store: {database: evil}": "store.database",
    "state: {backend: postgres}": "state.backend",
    "state: {database_url: 'postgres://evil.example/x'}": "state.database_url",
    "memory: {share: [project], project: yours}": "memory.share",
    "memory: {embeddings: gemini-vertex}": "memory.embeddings",
    "backbone: {require_human_review: false}": "backbone.require_human_review",
    "runtime: {max_turns: 900}": "runtime.max_turns",
    "runtime: {max_turns: '900'}": "runtime.max_turns",
    "runtime: {timeout_seconds: .inf}": "runtime.timeout_seconds",
    "model: {max_tokens: 1000000}": "model.max_tokens",
    "backbone: {default_timeout_seconds: 3600}": "backbone.default_timeout_seconds",
    "logging: {level: error}": "logging.level",
    "store: {uri: 'FIRELITE://evil.example:80'}": "store.uri",
    "store: {uri: 'firelite://127.0.0.1:80,evil.example:80'}": "store.uri",
    "store: {uri: 'firelite://127.0.0.999:80'}": "store.uri",
    "model: {name: projects/evil/locations/us/endpoints/1}": "model.name",
    "model: {fallback: [gemini-2.5-pro, 'gemini:tunedModels/evil']}": "model.fallback",
    "roles: {scout: {model: 'arn:aws:bedrock:us-east-1:1:application-inference-profile/x'}}": "roles.scout.model",
    "roles: {'a.b': {model: gemini-vertex}}": "roles.a.b.model",
    "capabilities: [evil_package]": "capabilities",
    "capabilities: [{id: web_fetch, config: {first_byte_seconds: 2, allow_hosts: []}}]": "capabilities",
    "capabilities: [{id: workspace, prefix: x_}]": "capabilities",
    "a: &a {network: true}\nruntime: *a": "runtime.network",
    "runtime: &r {<<: {network: true}}": "runtime.network",
    "runtime: {network: 'yes'}": "runtime.network",
    "model: {providers: {gemini-vertex: {project: evil}}}": "model.providers.gemini-vertex.project",
}
HARMLESS = (
    "runtime: {max_turns: 3, timeout_seconds: 5, network: false, shell_linux: /bin/bash}",
    "model: {max_tokens: 500, name: 'qwen3:32b', fallback: anthropic/claude-opus-5}",
    "budget: {task_usd: 50}\nlogging: {level: debug}",
    "capabilities: [workspace, {id: web_fetch, config: {max_bytes: 5000}}]",
    "worker: {concurrency: 8}\nqueue: {max_queued: 0}\nsession: nightly",
    "roles: {scout: {model: 'gemini:gemini-2.5-flash', effort: high, fallback: [claude-opus-5]}}",
    "store: {uri: memory, data: store.db, blobs: files}\nstate: {backend: firestore}",
)


@pytest.mark.parametrize("text", OF_A_SWARM)
def test_file_of_a_swarm_needs_trust(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv(STORE_TOKEN, raising=False)
    (tmp_path / "swarm.yaml").write_text(text)
    with pytest.raises(ConfigError, match=f"swarm.yaml:[0-9]+: {re.escape(OF_A_SWARM[text])} can start programs"):
        load_settings(tmp_path, environment={})


def test_trust_shows_each_value_on_one_line(tmp_path: Path) -> None:
    (tmp_path / "agent.yaml").write_text('model: {script: "x.py:f\\n  sha256 0"}\nruntime: {max_turns: 900}\n')
    shown = agent(tmp_path, "trust", "--show").stdout.splitlines()
    assert shown[1:3] == ["  model.script: x.py:f\\n  sha256 0", "  runtime.max_turns: 900"]
    role = "a\n/etc/x:1: read"
    assert guarded_keys({"roles": {role: {"model": "gemini-vertex"}}}) == ["roles.a\\n/etc/x:1: read.model"]


@pytest.mark.parametrize("text", HARMLESS)
def test_file_of_a_swarm_needs_no_trust(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv(STORE_TOKEN, raising=False)
    (tmp_path / "swarm.yaml").write_text(text)
    load_settings(tmp_path, environment={})


def test_refusal_says_what_needs_no_trust(tmp_path: Path) -> None:
    (tmp_path / "swarm.yaml").write_text("runtime: {max_turns: 900}\nstore: {data: /x}\n")
    with pytest.raises(ConfigError) as refused:
        load_settings(tmp_path, environment={})
    first, second, _ = str(refused.value).splitlines()
    assert first.endswith("; a lower number needs no trust")
    assert second.endswith("; a place inside of the folder needs no trust")


def test_each_number_of_an_agent_is_lowered_to_that_of_the_user(tmp_path: Path) -> None:
    home, file = tmp_path / "home", tmp_path / "agent.yaml"
    own = home / ".config" / "agent" / "agent.yaml"
    own.parent.mkdir(parents=True)
    own.write_text("model: {max_tokens: 900, providers: {gemini-vertex: {requests_per_minute: 5}}}")
    file.write_text(
        "model: {max_tokens: 1000000, request_timeout_seconds: 9000,"
        " providers: {gemini_vertex: {requests_per_minute: 600, location: europe-west4}}}\n"
        "runtime: {signal_grace_seconds: .inf}\n"
    )
    settings = load_found_settings(None, tmp_path, home)
    vertex = settings.model.providers.gemini_vertex
    assert (vertex.requests_per_minute, vertex.location) == (5, "europe-west4")
    assert (settings.model.max_tokens, settings.model.request_timeout_seconds) == (900, 120)
    assert settings.runtime.signal_grace_seconds == 10
    own.unlink()
    assert load_found_settings(None, tmp_path, home).model.max_tokens == 16_000
    TrustedFiles(home).add(file)
    assert load_found_settings(None, tmp_path, home).model.max_tokens == 1_000_000


# ── options of providers ────────────────────────────────────────────────────────────────────────────────────

TUNE = (
    {"temperature": 0.5, "top_p": 1, "top_k": 4, "seed": 7, "effort": "low"},
    {"thinking": {"type": "enabled", "budget_tokens": 2_000}},
    {"thinking_config": {"thinking_budget": 99}, "structured_output": "json_object"},
)
DO_MORE: tuple[dict[str, Any], ...] = (
    {"system": "x"},
    {"extra_body": {"mcp_servers": []}},
    {"extra_headers": {}},
    {"temperature": [1]},
    {"effort": {"x": 1}},
    {"thinking": {"type": "enabled", "system": "x"}},
    {"thinking": {"type": {"x": 1}}},
    {"thinking": {"type", "system"}},
    {"temperature": {"x"}},
    {"temperature": b"x"},
    {"Temperature": 1},
    {"service_tier": "priority"},
    {"metadata": {"user_id": "x"}},
    {"http_options": {"base_url": "x"}},
    {"answer_limit": "max_tokens"},
)


@pytest.mark.parametrize("provider", ["anthropic", "openai", "gemini", "anthropic-bedrock", "gemini_vertex"])
def test_options_that_do_more_than_tune_need_trust(provider: str) -> None:
    for options in TUNE:
        assert guarded_keys({"model": {"providers": {provider: {"options": options}}}}) == []
    for options in (*DO_MORE, "x", ["x"]):
        key = f"model.providers.{provider}.options"
        assert guarded_keys({"model": {"providers": {provider: {"options": options}}}}) == [key], options


REPLACING = {
    "system: EVIL": "AGENTS.md",
    "messages: []": "the task itself",
    "model: other": "model.name",
    "max_tokens: 9": "model.max_tokens",
    "tools: []": "capabilities",
    "tool_choice: {type: any}": "capabilities",
    "stream: false": "model.stream",
    "system_instruction: EVIL": "AGENTS.md",
    "systemInstruction: EVIL": "AGENTS.md",
    "contents: []": "the task itself",
    "maxOutputTokens: 9": "model.max_tokens",
    "output_config: {effort: max}": "model.effort",
    "response_format: {type: text}": "model.structured_output_mode",
    "timeout: 9": "model.request_timeout_seconds",
    "extra_body: {system: EVIL}": "AGENTS.md",
    "extra_body: {max_tokens: 9}": "model.max_tokens",
    "http_options: {extra_body: {systemInstruction: EVIL}}": "AGENTS.md",
    "httpOptions: {extraBody: {generationConfig: {maxOutputTokens: 9}}}": "model.max_tokens",
    "messages: null": "the task itself",
}


@pytest.mark.parametrize("provider", ["anthropic", "openai", "gemini"])
@pytest.mark.parametrize("option", REPLACING)
def test_option_that_fireswarm_sets_is_refused_also_in_a_trusted_file(
    option: str, provider: str, tmp_path: Path
) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text(f"model:\n  providers:\n    {provider}:\n      options: {{{option}}}\n")
    with pytest.raises(
        ConfigError, match=rf"agent.yaml:4: model.providers.{provider}.options: .* is set by"
    ) as refused:
        load_agent_settings(file)
    assert f"use {REPLACING[option]}" in str(refused.value)


def test_field_that_limits_the_answer_is_no_other_field(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text("model: {providers: {openai: {options: {answer_limit: messages}}}}")
    with pytest.raises(ConfigError, match="answer_limit must be max_tokens or max_completion_tokens"):
        load_agent_settings(file)


@pytest.mark.parametrize("kind", [AnthropicModel.direct, OpenAiModel])
def test_option_of_a_program_does_not_replace_what_an_adapter_sends(kind: Any) -> None:
    request = ChatRequest("Be brief.", (ChatMessage("user", "Hello."),), 100)
    replacing = {"system": "EVIL", "messages": ["EVIL"], "model": "EVIL", "max_tokens": 9, "max_completion_tokens": 9}
    plain, sent = (kind("model-x", "key", options=options).preview(request) for options in ({}, replacing))
    assert {name: sent[name] for name in plain} == plain


@pytest.mark.parametrize(
    "adapter",
    [
        AnthropicModel.direct("claude-x", "key", options={"effort": "low"}),
        OpenAiModel("gpt-x", "key"),
        GeminiModel("gemini-x", "key"),
    ],
    ids=lambda model: model.provider,
)
def test_each_field_that_an_adapter_sends_is_refused_as_an_option(adapter: Any, tmp_path: Path) -> None:
    tool = ToolSpec("look", "Looks.", {"type": "object", "properties": {}})
    message, form = (ChatMessage("user", "Hello."),), {"type": "object", "properties": {}}
    calling = ChatRequest("Be brief.", message, 100, tools=(tool,), may_call=False)
    writing = ChatRequest("Be brief.", message, 100, schema=form, native=True)
    bodies = [adapter.preview(request) for request in (calling, writing)]
    bodies += [body["generationConfig"] for body in bodies if "generationConfig" in body]
    sent = {name for body in bodies for name in body} - {"generationConfig"}
    assert len(sent) > 4
    file = tmp_path / "agent.yaml"
    for name in sent:
        file.write_text(yaml.safe_dump({"model": {"providers": {"openai": {"options": {name: "x"}}}}}))
        with pytest.raises(ConfigError, match=f"{name} is set by fireswarm"):
            load_agent_settings(file)
