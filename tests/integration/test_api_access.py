"""API access: bearer tokens, Google identity tokens, host names, body sizes, and addresses the API refuses to serve."""

from __future__ import annotations

import datetime
import json
import time
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import NameOID
from google.auth import crypt, jwt

from fireswarm.api.auth import CERTS_AGAIN_SECONDS, Access, GoogleTokens, google_certs, new_token, read_token
from fireswarm.cli.swarm.api import _access  # pyright: ignore[reportPrivateUsage] - decides what is refused at the start
from fireswarm.errors import ConfigError, StoreUnavailable
from tests.support.api import TOKEN, Api, open_api
from tests.support.http import HttpServer, Response
from tests.support.swarm import open_test_swarm

pytestmark = pytest.mark.anyio

AUDIENCE = "https://swarm.example"
ADA = "ada@example.com"


@pytest.fixture
async def api() -> AsyncGenerator[Api]:
    async with open_test_swarm(session="s1") as swarm, open_api(swarm, max_body_bytes=2_000) as opened:
        yield opened


@pytest.mark.parametrize("given", ["", "Bearer", f"Basic {TOKEN}", "Bearer wrong", f"Bearer {TOKEN}x", "Bearer \udcff"])
async def test_access_without_the_right_token_is_denied(given: str) -> None:
    assert not await Access(TOKEN).allows(given)


@pytest.mark.parametrize("path", ["/v1/status", "/openapi.json", "/v1/events", "/nothing"])
async def test_every_path_requires_the_token(api: Api, path: str) -> None:
    answer = await api.call("GET", path, headers={"Authorization": "Bearer wrong"})
    assert answer.status_code == 401 and answer.json()["code"] == "unauthorized"
    assert answer.headers["www-authenticate"].startswith("Bearer")


async def test_bearer_scheme_is_case_insensitive() -> None:
    assert await Access(TOKEN).allows(f"bearer  {TOKEN}")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8090", "127.0.0.1.evil.example", "", "[::2]"])
async def test_foreign_host_names_on_loopback_are_refused(api: Api, host: str) -> None:
    assert await api.problem("GET", "/v1/status", host=host) == (421, "misdirected_request")


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:8090", "LOCALHOST"])
async def test_loopback_host_names_are_accepted(api: Api, host: str) -> None:
    assert (await api.call("GET", "/v1/status", headers={"host": host})).is_success


async def test_oversized_body_is_refused_whether_sent_whole_or_chunked(api: Api) -> None:
    assert await api.problem("POST", "/v1/tasks", {"objective": "x" * 3_000}) == (413, "content_too_large")

    async def pieces() -> AsyncGenerator[bytes]:
        for _ in range(30):
            yield b"x" * 100

    answer = await api.client.post("/v1/tasks", content=pieces())
    assert answer.status_code == 413 and answer.headers["connection"] == "close"


async def test_responses_carry_no_cors_headers_and_are_cached_by_their_reader_at_most(api: Api) -> None:
    answer = await api.call("GET", "/v1/status", headers={"Origin": "https://evil.example"})
    assert not [name for name in answer.headers if name.startswith("access-control")]
    assert answer.headers["cache-control"] == "private, no-cache"
    made = await api.call("POST", "/v1/tasks", {"objective": "x", "role": "scout"})
    assert made.headers["cache-control"] == "no-store"
    assert (await api.call("GET", "/v1/tasks/none")).headers["cache-control"] == "no-store"


def key() -> tuple[crypt.RSASigner, str]:
    """Return a new signer and its certificate as PEM, as Google publishes it."""
    private = rsa.generate_private_key(public_exponent=65_537, key_size=2_048)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(private.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .sign(private, hashes.SHA256())
    )
    pem = private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    signer = crypt.RSASigner.from_string(pem, "key-1")
    return signer, certificate.public_bytes(serialization.Encoding.PEM).decode()


SIGNER, CERTIFICATE = key()
OTHER_SIGNER, _ = key()


def token(signer: Any = SIGNER, **changed: Any) -> str:
    now = int(time.time())
    claims = {
        "iss": "https://accounts.google.com",
        "aud": AUDIENCE,
        "email": ADA,
        "email_verified": True,
        "iat": now - 10,
        "exp": now + 600,
    }
    claims = {name: value for name, value in {**claims, **changed}.items() if value is not None}
    return jwt.encode(signer, claims).decode()


def google(*accounts: str, fetched: list[int] | None = None) -> Access:
    async def certs() -> dict[str, str]:
        if fetched is not None:
            fetched.append(1)
        return {"key-1": CERTIFICATE}

    return Access(google=GoogleTokens(AUDIENCE, frozenset(accounts or (ADA,)), certs))


async def test_valid_identity_tokens_are_accepted_and_google_keys_are_fetched_once() -> None:
    fetched: list[int] = []
    access = google(fetched=fetched)
    assert await access.allows(f"Bearer {token()}") and await access.allows(f"Bearer {token(email='Ada@Example.com')}")
    assert fetched == [1]
    assert await google("*").allows(f"Bearer {token(email=None)}")


PAST = int(time.time()) - 10_000
WRONG: dict[str, Callable[[], str]] = {
    "another audience": lambda: token(aud="https://other.example"),
    "expired": lambda: token(iat=PAST, exp=PAST + 10),
    "another issuer": lambda: token(iss="https://evil.example"),
    "another account": lambda: token(email="eve@example.com"),
    "an unverified address": lambda: token(email_verified=False),
    "no address": lambda: token(email=None),
    "another key": lambda: token(OTHER_SIGNER),
    "an unknown key": lambda: jwt.encode(SIGNER, {"aud": AUDIENCE}, key_id="key-2").decode(),
    "a key that is a list": lambda: jwt.encode(SIGNER, {"aud": AUDIENCE}, key_id=["key-1"]).decode(),  # pyright: ignore
    "no signature": lambda: token().rpartition(".")[0] + ".",
    "no claims": lambda: jwt.encode(SIGNER, {}).decode(),
    "a malformed time": lambda: token(exp="tomorrow"),
    "no token": lambda: "a.b.c",
    "none at all": lambda: "..",
}


@pytest.mark.parametrize("name", WRONG)
async def test_invalid_identity_token_is_rejected(name: str) -> None:
    assert not await google().allows(f"Bearer {WRONG[name]()}")


async def test_unknown_key_id_refetches_google_keys_at_a_limited_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    fetched: list[int] = []
    access = google(fetched=fetched)
    moment = time.monotonic()
    for passed, expected in ((0, 1), (1, 1), (CERTS_AGAIN_SECONDS + 1, 2)):
        monkeypatch.setattr("fireswarm.api.auth.time.monotonic", lambda passed=passed: moment + passed)
        assert not await access.allows(f"Bearer {WRONG['an unknown key']()}")
        assert len(fetched) == expected


async def test_unavailable_google_keys_return_a_503_problem() -> None:
    async def away() -> dict[str, str]:
        raise StoreUnavailable("cannot fetch Google's public keys")

    async with open_test_swarm() as swarm, open_api(swarm) as api:
        access = Access(google=GoogleTokens(AUDIENCE, frozenset({ADA}), away))
        object.__setattr__(api.app, "access", access)
        assert await api.problem("GET", "/v1/status", authorization=f"Bearer {token()}") == (503, "store_unavailable")


async def test_googles_keys_are_fetched_over_http(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [Response(200, json.dumps({"key-1": CERTIFICATE}).encode()), Response(500, b"{}"), Response(200, b"<")]
    server = HttpServer(lambda _: answers.pop(0))
    async with server.serving() as url:
        monkeypatch.setattr("fireswarm.api.auth.CERTS_URL", url)
        assert await google_certs() == {"key-1": CERTIFICATE}
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="cannot fetch"):
                await google_certs()


def test_access_without_any_authentication_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="the API needs authentication"):
        Access()


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "swarm.example", ""])
def test_api_on_an_open_address_refuses_to_start_without_authentication(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FIRESWARM_API_TOKEN", raising=False)
    with pytest.raises(ConfigError, match="does not start without authentication"):
        _access(host, None, None, ())
    monkeypatch.setenv("FIRESWARM_API_TOKEN", TOKEN)
    assert _access(host, None, None, ()) == (Access(TOKEN), None)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "127.0.0.2"])
def test_token_is_generated_on_loopback_when_none_is_configured(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FIRESWARM_API_TOKEN", raising=False)
    access, made = _access(host, None, None, ())
    assert made is not None and access.token == made and made not in repr(access)


def test_audience_without_accounts_is_refused() -> None:
    with pytest.raises(ConfigError, match="belong together"):
        _access("127.0.0.1", None, AUDIENCE, ())
    access, _ = _access("0.0.0.0", None, AUDIENCE, (ADA.upper(),))
    assert access.google is not None and access.google.accounts == {ADA}


def test_token_is_read_from_file_or_environment_and_checked(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    assert read_token("another-token-of-the-environment", file) == TOKEN
    assert read_token(f" {TOKEN} ", None) == TOKEN and read_token("", None) is None
    for wrong in ("short", "", "with a blank in the middle", "ünïcödé-ünïcödé-ünïcödé"):
        file.write_text(wrong)
        with pytest.raises(ConfigError, match="token"):
            read_token("", file)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_token("", tmp_path / "none")


def test_generated_tokens_are_long_and_unique() -> None:
    assert len(new_token()) >= 43 and new_token() != new_token()
