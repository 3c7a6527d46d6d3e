"""Authentication: a bearer token, or a token of an identity or of IAP that Google signed for this audience."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from pydantic import TypeAdapter

from fireswarm.errors import ConfigError, StoreUnavailable

MIN_TOKEN_CHARS = 16
"""Shorter tokens can be guessed by brute force."""

ISSUERS = frozenset({"accounts.google.com", "https://accounts.google.com"})
CERTS_URL = "https://www.googleapis.com/oauth2/v1/certs"
CERTS_SECONDS = 3_600.0
"""Google's keys change within days and are published before they are used."""

CERTS_AGAIN_SECONDS = 60.0
"""Minimum interval between fetches of the keys for a token with an unknown key."""

CERTS_RETRY_SECONDS = 5.0
"""Minimum interval after a fetch that failed: callers with forged tokens would otherwise fetch with every request."""

IAP_ISSUERS = frozenset({"https://cloud.google.com/iap"})
IAP_KEYS_URL = "https://www.gstatic.com/iap/verify/public_key"
IAP_SKEW_SECONDS = 30
"""Difference of clocks that Google allows for: IAP signs a header for each request, in the same second."""

ANYONE = "*"

Certs = Mapping[str, str]
Fetch = Callable[[], Awaitable[Certs]]


def new_token() -> str:
    """Return a random token of 256 bits."""
    return secrets.token_urlsafe(32)


def read_token(given: str, file: Path | None) -> str | None:
    """Return the operator's token from *file*, or *given*, which comes from the environment.

    Raises ConfigError for an unreadable file, or for a token that is too short.
    """
    if file is not None:
        try:
            token, where = file.read_text(encoding="utf-8").strip(), str(file)
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"--token-file {file} cannot be read: {error}") from error
    else:
        token, where = given.strip(), "the environment"
        if not token:
            return None
    if len(token) < MIN_TOKEN_CHARS:
        raise ConfigError(f"the token in {where} has fewer than {MIN_TOKEN_CHARS} characters: use a longer one")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise ConfigError(f"the token in {where} must be printable ASCII without spaces")
    return token


async def google_certs() -> Certs:
    """Fetch Google's public keys for identity tokens."""
    return await _fetch_keys(CERTS_URL)


async def iap_keys() -> Certs:
    """Fetch Google's public keys for the headers of the Identity-Aware Proxy."""
    return await _fetch_keys(IAP_KEYS_URL)


async def _fetch_keys(url: str) -> Certs:
    import httpx2

    try:
        async with httpx2.AsyncClient(timeout=10.0) as client:
            answer = await client.get(url)
            answer.raise_for_status()
            return TypeAdapter(dict[str, str]).validate_json(answer.content)
    except (httpx2.HTTPError, ValueError) as error:
        raise StoreUnavailable(f"cannot fetch Google's public keys from {url}: {error}") from error


@dataclass(slots=True)
class GoogleTokens:
    """Verifies tokens of one audience that Google signed; *accounts* are e-mail addresses, or ``*``.

    By default they are identity tokens; `iap_tokens` verifies the header of the Identity-Aware Proxy.
    """

    audience: str
    accounts: frozenset[str]
    fetch: Fetch = google_certs
    issuers: frozenset[str] = ISSUERS
    algorithm: str = "RS256"
    skew_seconds: int = 0
    _certs: Certs = field(default_factory=dict[str, str])
    _fetched: float = float("-inf")
    _failed: float = float("-inf")
    _busy: anyio.Lock = field(default_factory=anyio.Lock)

    async def accepts(self, token: str) -> bool:
        """Return True if *token* is valid: signed by Google, not expired, for this audience and an allowed account."""
        claims = await self.claims(token)
        if claims is None:
            return False
        return ANYONE in self.accounts or (claims.get("email_verified") is True and email_of(claims) in self.accounts)

    async def claims(self, token: str) -> Mapping[str, Any] | None:
        """Return what a valid *token* says of whoever has it, None for another one.

        Raises StoreUnavailable if Google's keys are needed and cannot be fetched.
        """
        from google.auth import jwt

        try:
            head = jwt.decode_header(token) if token.count(".") == 2 else {}
        except (ValueError, AttributeError, RecursionError):
            return None
        key = head.get("kid")
        if not isinstance(key, str) or head.get("alg") != self.algorithm:
            return None
        certs = await self._keys(key)
        if key not in certs:
            return None

        def verify() -> Mapping[str, Any] | None:
            try:
                return jwt.decode(token, certs=certs, audience=self.audience, clock_skew_in_seconds=self.skew_seconds)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                return None  # google-auth's own errors are ValueErrors; others come from claims of a wrong type

        claims = await anyio.to_thread.run_sync(verify)
        return claims if claims is not None and str(claims.get("iss")) in self.issuers else None

    async def _keys(self, wanted: str) -> Certs:
        if wanted in self._certs and time.monotonic() - self._fetched <= CERTS_SECONDS:
            return self._certs
        async with self._busy:
            now = time.monotonic()
            age = now - self._fetched
            if age > CERTS_SECONDS or (wanted not in self._certs and age > CERTS_AGAIN_SECONDS):
                if now - self._failed < CERTS_RETRY_SECONDS:
                    raise StoreUnavailable("Google's public keys could not be fetched a moment ago: try again in 5 s")
                try:
                    self._certs = await self.fetch()
                except StoreUnavailable:
                    self._failed = time.monotonic()
                    raise
                self._fetched = time.monotonic()
            return self._certs


def iap_tokens(audience: str, fetch: Fetch = iap_keys) -> GoogleTokens:
    """Return what verifies the header that the Identity-Aware Proxy adds to requests for *audience*."""
    return GoogleTokens(audience, frozenset(), fetch, IAP_ISSUERS, "ES256", IAP_SKEW_SECONDS)


def email_of(claims: Mapping[str, Any]) -> str:
    """Return the e-mail address of a token in lower case, or "" if it has none in ASCII.

    Other letters become ASCII in lower case: the sign of Kelvin becomes a k.
    """
    email = claims.get("email")
    return email.lower() if isinstance(email, str) and email.isascii() else ""


@dataclass(frozen=True, slots=True)
class Access:
    """Allowed callers: those with the token, and the accounts verified by Google. At least one must be configured."""

    token: str | None = field(default=None, repr=False)
    google: GoogleTokens | None = None

    def __post_init__(self) -> None:
        """Raise ConfigError if neither is configured."""
        if not self.token and self.google is None:
            raise ConfigError("the API needs authentication: set a token or accept Google identity tokens")

    async def allows(self, authorization: str) -> bool:
        """Return True if the value of an Authorization header is valid."""
        token = bearer_of(authorization)
        if not token:
            return False
        return self.has_token(token) or (self.google is not None and await self.google.accepts(token))

    def has_token(self, token: str) -> bool:
        """Return True for the operator's token."""
        return self.token is not None and hmac.compare_digest(_digest(token), _digest(self.token))


def bearer_of(authorization: str) -> str:
    """Return the token in the value of an Authorization header, or ""."""
    scheme, _, token = authorization.strip().partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _digest(text: str) -> bytes:
    """Hash to a fixed length, so that a comparison takes the same time for any two texts."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
