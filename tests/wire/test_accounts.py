"""Models that an account pays for: Vertex AI by Application Default Credentials, Bedrock by AWS credentials."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
from anthropic.lib.aws import _auth
from google.auth.exceptions import RefreshError, TransportError

from fireswarm.contracts.llm.chat import ChatMessage, ChatRequest
from fireswarm.contracts.swarm.event import EventType
from fireswarm.errors import ConfigError, MissingApiKey, ModelRejected, ModelUnavailable
from fireswarm.llm.providers.google_access import google_access
from fireswarm.mind import ConclusionStatus
from fireswarm.runs.model_adapters import describe_access, make_model
from fireswarm.settings import load_agent_settings
from tests.support.cloud_accounts import BEARER, LOCATION, PROJECT, REGION, service_account_file
from tests.support.minds import ENVIRONMENT, Bench, Lab, at, decided
from tests.support.provider_replies import Received
from tests.support.providers import Reply
from tests.wire.test_faults import RETRIES

pytestmark = pytest.mark.anyio
ON_VERTEX = ("anthropic-vertex", "gemini-vertex")
ON_ACCOUNTS = (*ON_VERTEX, "anthropic-bedrock")
GOOD = Reply(decided(text="hello Ada"))
DEFAULTS = load_agent_settings(None, {})


@pytest.fixture
async def lab(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Lab]:
    async with Lab.open(monkeypatch) as opened:
        yield opened


def without_accounts(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    """Leave no credentials where the clouds' tools look for them."""
    for name in ("GOOGLE_APPLICATION_CREDENTIALS", "GOOGLE_CLOUD_PROJECT", "AWS_ACCESS_KEY_ID", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY", raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(home / "gcloud"))


@pytest.mark.parametrize("provider", ON_VERTEX)
async def test_token_is_got_once_and_names_project_and_location(provider: str, lab: Lab, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    for _ in range(3):
        await lab.run(bench, provider, (GOOD,))
    assert lab.served.tokens.asked == 1
    [call] = lab.served.calls
    assert f"/projects/{PROJECT}/locations/{LOCATION}/" in call.target
    assert call.headers["authorization"] == "Bearer token-0"


@pytest.mark.parametrize("provider", ON_VERTEX)
async def test_token_that_is_about_to_expire_is_renewed_before_the_call(
    provider: str, lab: Lab, tmp_path: Path
) -> None:
    lab.served.tokens.seconds = 30
    bench = Bench(tmp_path)
    for _ in range(2):
        ran = await lab.run(bench, provider, (GOOD,))
        assert ran.of(EventType.LLM_REQUEST_FAILED) == []
    newest = len(lab.served.tokens.issued) - 1  # the SDKs renew a token that lasts so short, too
    assert newest >= 1
    assert lab.served.calls[0].headers["authorization"] == f"Bearer token-{newest}"


@pytest.mark.parametrize("provider", ON_VERTEX)
async def test_refused_token_is_renewed_once_and_the_retry_is_an_event(provider: str, lab: Lab, tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    await lab.run(bench, provider, (GOOD,))
    for round_ in (1, 2):  # a token that worked in between may be renewed again
        lab.served.tokens.revoke()
        ran = await lab.run(bench, provider, (GOOD,))
        assert ran.conclusion.status is ConclusionStatus.FINISHED, ran.conclusion
        [failed] = ran.of(EventType.LLM_REQUEST_FAILED)
        assert (failed["status"], failed["retryable"]) == (401, True)
        assert lab.served.tokens.asked == 1 + round_


@pytest.mark.parametrize("provider", ON_VERTEX)
async def test_calls_that_are_refused_together_are_all_repeated_with_one_new_token(provider: str, lab: Lab) -> None:
    model = lab.models[provider] = lab.model(provider)
    lab.served.script = [Reply("Hello.")]

    async def call() -> Any:
        return await model.complete(ChatRequest("Be brief.", (ChatMessage("user", "Hello."),), 100))

    await call()
    lab.served.tokens.revoke()
    ends = await asyncio.gather(*(call() for _ in range(6)), return_exceptions=True)
    refused = [end for end in ends if isinstance(end, Exception)]
    assert len(refused) > 1  # a late call may have the new token already
    assert {(type(error), getattr(error, "status", 0)) for error in refused} == {(ModelUnavailable, 401)}
    answers = await asyncio.gather(*(call() for _ in range(6)))
    assert [answer.text for answer in answers] == ["Hello."] * 6
    assert lab.served.tokens.asked == 2


@pytest.mark.parametrize("provider", ON_VERTEX)
async def test_account_that_is_refused_ends_the_run_with_the_command_to_log_in(
    provider: str, lab: Lab, tmp_path: Path
) -> None:
    ran = await lab.run(Bench(tmp_path), provider, (Reply(status=401, message="no"),))
    assert ran.conclusion.reason == "model_rejected"
    assert "gcloud auth application-default login" in ran.conclusion.answer
    assert (lab.served.tokens.asked, len(lab.served.calls)) == (2, 2)
    assert "token-" not in ran.log


@pytest.mark.parametrize("provider", ON_VERTEX)
@pytest.mark.parametrize(
    ("status", "advice"), [(403, "roles/aiplatform.user"), (404, "Model Garden"), (429, "answered 429")]
)
async def test_refusal_of_vertex_says_what_to_do(
    provider: str, status: int, advice: str, lab: Lab, tmp_path: Path
) -> None:
    ran = await lab.run(Bench(tmp_path), provider, (Reply(status=status, message="no"),))
    assert advice in ran.conclusion.answer
    assert "api_key_env" not in ran.conclusion.answer


@pytest.mark.parametrize("provider", ON_VERTEX)
async def test_login_that_ended_is_final_and_says_how_to_log_in(provider: str, lab: Lab, tmp_path: Path) -> None:
    lab.served.tokens.failures = [(400, "invalid_grant")]
    ran = await lab.run(Bench(tmp_path), provider, (GOOD,))
    assert ran.conclusion.reason == "model_rejected"
    assert "invalid_grant" in ran.conclusion.answer and "gcloud auth" in ran.conclusion.answer
    assert lab.served.calls == []


@pytest.mark.parametrize("provider", ON_VERTEX)
async def test_token_server_that_is_away_is_tried_again(
    provider: str, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        away = service_account_file(tmp_path, f"http://127.0.0.1:{closed.getsockname()[1]}")
        monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(away))
        ran = await lab.run(Bench(tmp_path), provider, (GOOD,))
    assert ran.conclusion.reason == "model_unavailable"
    assert len(ran.of(EventType.LLM_RETRY_SCHEDULED)) == RETRIES


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RefreshError("500", retryable=True), ModelUnavailable),
        (TransportError("no route"), ModelUnavailable),
        (RefreshError("invalid_grant: Bad Request"), ModelRejected),
        (RefreshError("x" * 100_000), ModelRejected),
    ],
)
async def test_only_a_token_server_without_an_answer_is_transient(
    error: Exception, kind: type[Exception], lab: Lab
) -> None:
    fault = google_access(at(DEFAULTS, lab.served.url, "gemini-vertex").model, ENVIRONMENT).fault_of(error)
    assert type(fault) is kind
    assert len(str(fault)) < 1_000


@pytest.mark.parametrize("provider", ON_VERTEX)
async def test_cloud_run_needs_no_key_and_no_project(
    provider: str, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_accounts(monkeypatch, tmp_path)
    host = lab.served.url.removeprefix("http://")
    monkeypatch.setenv("GCE_METADATA_IP", host)
    monkeypatch.setattr("google.auth.compute_engine._metadata._GCE_METADATA_HOST", host)
    monkeypatch.setattr("google.auth.compute_engine._metadata._NO_GCE_CHECK", False)  # both are read at import
    settings = at(DEFAULTS, lab.served.url, provider)
    lab.models[provider] = await asyncio.to_thread(make_model, settings, tmp_path, ENVIRONMENT)
    ran = await lab.run(Bench(tmp_path), provider, (GOOD,))
    assert ran.conclusion.status is ConclusionStatus.FINISHED, ran.conclusion
    assert f"/projects/{PROJECT}/" in lab.served.calls[0].target


@pytest.mark.parametrize("provider", ON_ACCOUNTS)
async def test_without_an_account_nothing_is_called_and_the_command_is_named(
    provider: str, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_accounts(monkeypatch, tmp_path)
    settings = at(DEFAULTS, lab.served.url, provider)
    for call in (lambda: make_model(settings, tmp_path, ENVIRONMENT), lambda: describe_access(settings, ENVIRONMENT)):
        with pytest.raises(MissingApiKey, match="run `(?:gcloud auth application-default|aws sso) login`"):
            call()
    shown: Any = make_model(settings, tmp_path, {}, sends=False)
    assert "Hello." in json.dumps(shown.preview(ChatRequest("Be brief.", (ChatMessage("user", "Hello."),), 100)))
    await shown.aclose()


@pytest.mark.parametrize("content", ["", "no JSON", "[]", '{"type": "service_account"}', '{"type": 5}', "\0"])
async def test_credentials_file_that_is_none_is_reported_with_the_command(
    content: str, lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "odd.json"
    file.write_text(content)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    with pytest.raises((MissingApiKey, ConfigError), match="gcloud auth application-default login"):
        google_access(load_agent_settings(None, {"model.provider": "gemini-vertex"}).model, {})


async def test_credentials_without_a_project_ask_for_one(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = service_account_file(tmp_path, lab.served.url, project=None)
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    monkeypatch.delenv("GOOGLE_CLOUD_PROJECT", raising=False)
    monkeypatch.setenv("CLOUDSDK_CONFIG", str(tmp_path))
    settings = at(DEFAULTS, lab.served.url, "gemini-vertex")
    with pytest.raises(ConfigError, match=r"set model\.providers\.gemini-vertex\.project or GOOGLE_CLOUD_PROJECT"):
        make_model(settings, tmp_path, {})
    assert "project other-1," in describe_access(settings, {"GOOGLE_CLOUD_PROJECT": "other-1"})


@pytest.mark.parametrize("place", ["evil.com/x", "a b", "", "x" * 100, "-", "a\n"])
def test_location_that_could_be_an_address_is_refused(place: str) -> None:
    if place:
        with pytest.raises(ConfigError, match="location"):
            load_agent_settings(None, {"model.providers.gemini-vertex.location": place})
    settings = load_agent_settings(None, {"model.provider": "gemini-vertex"})
    if place.strip() in ("", "a"):
        return
    with pytest.raises(ConfigError, match="GOOGLE_CLOUD_LOCATION"):
        make_model(settings, Path(), {"GOOGLE_CLOUD_LOCATION": place}, sends=False)


async def test_keys_in_the_environment_go_to_no_account_and_variables_do_not_redirect_a_key(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GEMINI_API_KEY", "GOOGLE_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "sk-another-key-0123456789")
    monkeypatch.setenv("GOOGLE_GENAI_USE_VERTEXAI", "true")
    bench = Bench(tmp_path)
    for provider in (*ON_VERTEX, "gemini", "anthropic"):
        ran = await lab.run(bench, provider, (GOOD,))
        assert ran.conclusion.status is ConclusionStatus.FINISHED, (provider, ran.conclusion, lab.served.refused)
        assert [call.platform for call in lab.served.calls] == [provider]


async def test_bedrock_refuses_another_secret_and_the_run_says_what_to_check(
    lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another-secret-0123456789")
    lab.models["anthropic-bedrock"] = lab.model("anthropic-bedrock")
    monkeypatch.setattr("anthropic.lib.aws._auth._get_session", _auth._get_session.__wrapped__)  # pyright: ignore
    ran = await lab.run(Bench(tmp_path), "anthropic-bedrock", (GOOD,))
    assert ran.conclusion.reason == "model_rejected"
    assert "bedrock:InvokeModelWithResponseStream" in ran.conclusion.answer


async def test_bedrock_takes_a_bearer_token(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_accounts(monkeypatch, tmp_path)
    settings = at(DEFAULTS, lab.served.url, "anthropic-bedrock")
    environment = {"AWS_BEARER_TOKEN_BEDROCK": BEARER}
    lab.models["anthropic-bedrock"] = make_model(settings, tmp_path, environment)
    ran = await lab.run(Bench(tmp_path), "anthropic-bedrock", (GOOD,))
    assert ran.conclusion.status is ConclusionStatus.FINISHED, ran.conclusion
    assert describe_access(settings, environment).startswith(f"AWS_BEARER_TOKEN_BEDROCK, region {REGION}")


async def test_bedrock_needs_a_region(lab: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.delenv("AWS_REGION", raising=False)
    settings = load_agent_settings(None, {"model.provider": "anthropic-bedrock", "model.name": "anthropic.claude-x"})
    with pytest.raises(ConfigError, match=r"set model\.providers\.anthropic-bedrock\.region or AWS_REGION"):
        make_model(settings, tmp_path, os.environ)


@pytest.mark.parametrize(
    "name",
    [
        "arn:aws:bedrock:eu-west-1:123456789012:application-inference-profile/abc123",
        "global.anthropic.claude-sonnet-5-v1:0",
    ],
)
async def test_model_id_of_bedrock_reaches_its_path_unchanged(name: str, lab: Lab, tmp_path: Path) -> None:
    settings = at(load_agent_settings(None, {"model.name": name}), lab.served.url, "anthropic-bedrock")
    named = settings.model_copy(update={"model": settings.model.model_copy(update={"name": name})})
    lab.models["anthropic-bedrock"] = make_model(named, tmp_path, {})
    asked: list[Received] = []

    def script(request: Received) -> Reply:
        asked.append(request)
        return GOOD

    await lab.run(Bench(tmp_path), "anthropic-bedrock", script)
    assert [request.model for request in asked] == [name]
