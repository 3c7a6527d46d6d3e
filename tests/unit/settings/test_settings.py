"""Settings: strict validation; every fault is reported with file, line and key."""

from __future__ import annotations

import pwd
import sys
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from fireswarm.cli.agent.main import PROVIDERS
from fireswarm.errors import ConfigError, MissingApiKey
from fireswarm.runs.model_adapters import describe_access, key_for, make_model
from fireswarm.settings import AgentSettings, Settings, find_agent_file, load_agent_settings, load_settings
from fireswarm.settings.extras import packages_of
from fireswarm.settings.load import home_folder
from fireswarm.settings.providers import DEFAULTS
from fireswarm.settings.sample import keys, sample

SEED = """
model:
  provider: anthropic  # anthropic | gemini
  name: claude-sonnet-4-5
  max_tokens: 4096
  max_context_tokens: 32000
  response_headroom_tokens: 2000
  structured_output_mode: native_with_json_fallback
  providers:
    anthropic:
      api_key_env: ANTHROPIC_API_KEY
    gemini:
      api_key_env: GEMINI_API_KEY
runtime:
  profile: permissive
  shell_linux: /bin/bash
  shell_windows: pwsh
  timeout_seconds: 120
  max_turns: 8
  max_llm_retries: 20
  retry_base_delay_seconds: 1.0
  retry_max_delay_seconds: 8.0
  on_step_failure: retry_once_then_fallback_then_abort
  signal_grace_seconds: 10
skills:
  dir: ./skills
  prefilter_top_k: 8
  prefilter_min_score: 55
  prefilter_zero_candidate_strategy: fallback_all_skills
  disclosure_max_reference_bytes: 120000
  disclosure_max_reference_tokens: 4000
logging:
  level: info
  jsonl_dir: ./runs
  run_id_pattern: "YYYYMMDD-HHMMSS-<short-uuid>"
  debug_llm_bodies: false
  sanitize_control_chars: true
  redact_secrets: true
"""


def load(tmp_path: Path, text: str) -> AgentSettings:
    path = tmp_path / "agent.yaml"
    path.write_text(text, encoding="utf-8")
    return load_agent_settings(path)


def fault(tmp_path: Path, text: str) -> str:
    with pytest.raises(ConfigError) as raised:
        load(tmp_path, text)
    return str(raised.value).replace(str(tmp_path), "")


def test_specified_sample_file_is_valid_and_equals_the_defaults(tmp_path: Path) -> None:
    changed = {"  name: claude-sonnet-4-5\n": "", "max_turns: 8": "max_turns: 40"}  # decided since: ADR 015
    changed |= {"  max_context_tokens: 32000\n": "", "  max_tokens: 4096\n": ""}
    changed["retry_max_delay_seconds: 8.0"] = "retry_max_delay_seconds: 60.0"
    changed["on_step_failure: retry_once_then_fallback_then_abort"] = "on_step_failure: report"
    text = SEED
    for specified, ours in changed.items():
        assert specified in text
        text = text.replace(specified, ours)
    assert load(tmp_path, text) == AgentSettings()


def test_empty_or_missing_file_gives_the_defaults(tmp_path: Path) -> None:
    for text in ("", "# nothing\n", "---\n"):
        assert load(tmp_path, text) == AgentSettings()
    assert load_agent_settings(None) == AgentSettings()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("modle:\n  x: 1\n", "/agent.yaml:1: modle: unknown key; did you mean model?"),
        ("model:\n  name: x\n  max_token: 1\n",
        "/agent.yaml:3: model.max_token: unknown key; did you mean max_tokens?"),
        ("model:\n  providers:\n    gemini:\n      api_key: x\n",
        "/agent.yaml:4: model.providers.gemini.api_key: unknown key"),
        ("runtime:\n  zzz: 1\n",
        "/agent.yaml:2: runtime.zzz: unknown key; known here: confinement, max_disk_mb"),
        ("model:\n  provider: antropic\n", "/agent.yaml:2: model.provider: Input should be 'anthropic'"),
        ("runtime:\n\n\n  max_turns: 0\n",
        "/agent.yaml:4: runtime.max_turns: Input should be greater than or equal to 1 (given: 0)"),
        ("runtime:\n  max_turns: many\n", "runtime.max_turns: Input should be a valid integer"),
        ("runtime: 5\n", "/agent.yaml:1: runtime: Input should be a valid dictionary"),
        ("logging:\n  redact_secrets: false\n", "/agent.yaml:2: logging.redact_secrets: Input should be True"),
        ("model:\n  max_context_tokens: 1000\n",
        "/agent.yaml:1: model: Value error, response_headroom_tokens must be smaller"),
        ("budget:\n  prices:\n    m: {inputs: 1}\n", "/agent.yaml:1: budget: Value error, prices of m: unknown inputs"),
        ("model:\n  name: a\n  name: b\n", "/agent.yaml:3: model.name is given twice"),
        ("a: [1\n", "/agent.yaml:2 is not YAML"),
        ("a: b: c\n", "/agent.yaml:1 is not YAML"),
        ("- a\n- b\n", "/agent.yaml:1 must be a map of settings"),
        ("just words\n", "/agent.yaml:1 must be a map"),
        ("? [a, b]\n: 1\n", "/agent.yaml"),
        ("1: 2\n", "/agent.yaml:1"),
        ("model:\n  name: 2026-13-45\n", "uses YAML that settings do not support: month must be in"),
        ("model: &a\n  providers: *a\n", "/agent.yaml"),
        ("model: !!python/object:os.system {}\n", "/agent.yaml:1 uses YAML that settings do not support"),
        ("model: \x00\n", "/agent.yaml is not YAML"),
    ],
)  # fmt: skip
def test_every_fault_names_file_line_and_key(text: str, told: str, tmp_path: Path) -> None:
    assert told in fault(tmp_path, text)


def test_all_faults_are_reported_at_once(tmp_path: Path) -> None:
    told = fault(tmp_path, "modle: 1\nruntime:\n  max_turns: 0\n  profil: x\n")
    assert [line.partition(": ")[0] for line in told.splitlines()] == [
        "/agent.yaml:3",
        "/agent.yaml:4",
        "/agent.yaml:1",
    ]


def test_secret_pasted_into_the_file_is_not_shown_in_errors(tmp_path: Path) -> None:
    secret = "sk-" + "ant-" + "abc0" * 8
    for key in ("model:\n  api_key", "model:\n  provider", "runtime:\n  max_turns"):
        assert secret not in fault(tmp_path, f"{key}: {secret}\n")


def test_nested_aliases_are_parsed_quickly(tmp_path: Path) -> None:
    lines = ["a0: &a0 {x: 1}"] + [f"a{n}: &a{n} {{p: *a{n - 1}, q: *a{n - 1}}}" for n in range(1, 40)]
    assert "a0" in fault(tmp_path, "\n".join(lines))


def test_folder_or_huge_file_is_rejected_as_settings(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_agent_settings(tmp_path)
    (tmp_path / "agent.yaml").write_text("#" * 1_000_001)
    with pytest.raises(ConfigError, match="larger than"):
        load_agent_settings(tmp_path / "agent.yaml")
    (tmp_path / "agent.yaml").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(ConfigError, match="is not YAML"):
        load_agent_settings(tmp_path / "agent.yaml")


@settings(deadline=None)
@given(st.text(max_size=60) | st.text(alphabet="model: {}[]&*!|>-#\n'\"%@`1", max_size=60))
def test_loader_survives_any_file_content(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(text, encoding="utf-8", errors="replace", newline="")
    try:
        assert isinstance(load_agent_settings(path), AgentSettings)
    except ConfigError as error:
        assert "any.yaml" in str(error)


def test_nearest_settings_file_is_used(tmp_path: Path) -> None:
    root, home = tmp_path / "root", tmp_path / "home"
    named, near, far = tmp_path / "x.yaml", root / "agent.yaml", home / ".config" / "agent" / "agent.yaml"
    for path in (named, near, far):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert find_agent_file(named, root, home) == named
    assert find_agent_file(None, root, home) == near
    near.unlink()
    assert find_agent_file(None, root, home) == far
    far.unlink()
    assert find_agent_file(None, root, home) is None
    named.unlink()
    with pytest.raises(ConfigError, match=r"x.yaml does not exist: give another --config"):
        find_agent_file(named, root, home)


def test_command_line_overrides_the_file(tmp_path: Path) -> None:
    path = tmp_path / "agent.yaml"
    path.write_text("runtime:\n  max_turns: 3\n  profile: read_only\n")
    settings = load_agent_settings(path, {"runtime.max_turns": 5, "runtime.profile": None, "model.name": "m"})
    assert (settings.runtime.max_turns, settings.runtime.profile, settings.model.model_name) == (5, "read_only", "m")
    path.write_text("runtime:\nmodel: 5\n")
    with pytest.raises(ConfigError, match=r"agent.yaml:2: model must be a map"):
        load_agent_settings(path, {"runtime.max_turns": 5, "model.name": "m"})


def test_environment_overrides_swarm_yaml(tmp_path: Path) -> None:
    (tmp_path / "swarm.yaml").write_text("model:\n  provider: gemini\nsession: mine\n")
    settings = load_settings(tmp_path, {"FIRESWARM_MODEL": "m", "FIRESWARM_SESSION": "other"}, {"session": None})
    assert (settings.model.provider, settings.model.name, settings.session) == ("gemini", "m", "other")


@pytest.mark.parametrize("kind", [AgentSettings, Settings])
def test_generated_sample_is_valid_and_contains_every_default(kind: type[AgentSettings], tmp_path: Path) -> None:
    path = tmp_path / "sample.yaml"
    path.write_text(sample(kind), encoding="utf-8")
    read = kind.model_validate(yaml.safe_load(path.read_text()))
    assert read == kind()
    text = path.read_text()
    for key in keys(kind):
        assert f"{key.name.rpartition('.')[2]}:" in text
        assert key.meaning, f"{key.name} says nothing"


@pytest.mark.parametrize(("provider", "variable"), [("anthropic", "ANTHROPIC_API_KEY"), ("gemini", "GEMINI_API_KEY")])
def test_api_key_belongs_to_the_chosen_provider(provider: str, variable: str) -> None:
    settings = load_agent_settings(None, {"model.provider": provider})
    assert key_for(settings, {"ANTHROPIC_API_KEY": "a", "GEMINI_API_KEY": "g"}) == provider[0]
    for environment in ({}, {variable: ""}, {variable: "  "}):
        with pytest.raises(MissingApiKey, match=rf"{variable} is not set, and {provider} needs it: export {variable}="):
            key_for(settings, environment)
    named = load_agent_settings(None, {"model.provider": provider, f"model.providers.{provider}.api_key_env": "MINE"})
    assert key_for(named, {"MINE": " k \n"}) == "k"


def test_key_of_openai_goes_to_no_other_endpoint_unless_it_is_named() -> None:
    base = {"model.provider": "openai", "model.name": "m"}
    at_openai = load_agent_settings(None, base)
    assert key_for(at_openai, {"OPENAI_API_KEY": "o"}) == "o"
    with pytest.raises(MissingApiKey, match="OPENAI_API_KEY is not set"):
        key_for(at_openai, {})
    local = {**base, "model.providers.openai.base_url": "http://127.0.0.1:11434/v1"}
    assert key_for(load_agent_settings(None, local), {"OPENAI_API_KEY": "o"}) == ""
    named = load_agent_settings(None, {**local, "model.providers.openai.api_key_env": "MINE"})
    assert key_for(named, {"MINE": "m", "OPENAI_API_KEY": "o"}) == "m"
    with pytest.raises(MissingApiKey, match="MINE is not set"):
        key_for(named, {"OPENAI_API_KEY": "o"})


@pytest.mark.parametrize("provider", ["openai", "anthropic-bedrock"])
def test_provider_without_a_default_model_asks_for_its_name(provider: str) -> None:
    with pytest.raises(ConfigError, match=f"provider {provider} has no default model: set model.name, or --model"):
        load_agent_settings(None, {"model.provider": provider})
    assert load_agent_settings(None, {"model.provider": provider, "model.name": "m"}).model.model_name == "m"


@pytest.mark.parametrize("provider", [*DEFAULTS, "scripted"])
def test_each_provider_is_an_option_of_the_command_and_has_settings(provider: str) -> None:
    assert provider in PROVIDERS.split("|")
    model = load_agent_settings(None, {"model.provider": provider, "model.name": "m"}).model
    assert (provider == "scripted") == (not model.chosen.adapter)


@pytest.mark.parametrize(
    ("provider", "module", "extra"), [("openai", "openai", "openai"), ("anthropic-bedrock", "boto3", "bedrock")]
)
def test_missing_extra_is_named_with_the_command_that_installs_it(
    provider: str, module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    settings = load_agent_settings(None, {"model.provider": provider, "model.name": "m"})
    for call in (lambda: make_model(settings, Path(), {}), lambda: describe_access(settings, {})):
        with pytest.raises(ConfigError, match=rf"needs {module}: .*{packages_of(extra)[0][:6]}"):
            call()


def test_misspelled_provider_and_setting_are_reported_with_those_that_exist() -> None:
    with pytest.raises(ConfigError, match="did you mean gemini-vertex"):
        load_agent_settings(None, {"model.providers.gemini-vertx.location": "x"})
    with pytest.raises(ConfigError, match="did you mean project"):
        load_agent_settings(None, {"model.providers.anthropic-vertex.projet": "x"})
    with pytest.raises(ConfigError, match="'anthropic-vertex'"):
        load_agent_settings(None, {"model.provider": "vertex"})


def test_home_of_a_user_id_without_one_is_the_root_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(number: int) -> object:
        raise KeyError(f"getpwuid(): uid not found: {number}")

    monkeypatch.delenv("HOME")
    monkeypatch.setattr(pwd, "getpwuid", unknown)

    assert home_folder() == Path("/")
