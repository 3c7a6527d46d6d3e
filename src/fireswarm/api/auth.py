"""Authentication: a bearer token, or an identity token signed by Google for this service's audience."""

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

from fireswarm.errors import ConfigError, StoreUnavailable

MIN_TOKEN_CHARS = 16
"""Shorter tokens can be guessed by brute force."""

ISSUERS = frozenset({"accounts.google.com", "https://accounts.google.com"})
CERTS_URL = "https://www.googleapis.com/oauth2/v1/certs"
CERTS_SECONDS = 3_600.0
"""Google's keys change within days and are published before they are used."""

CERTS_AGAIN_SECONDS = 60.0
"""Minimum interval between fetches of the keys for a token with an unknown key."""

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
    import httpx2

    try:
        async with httpx2.AsyncClient(timeout=10.0) as client:
            answer = await client.get(CERTS_URL)
            answer.raise_for_status()
            return answer.json()
    except (httpx2.HTTPError, ValueError) as error:
        raise StoreUnavailable(f"cannot fetch Google's public keys from {CERTS_URL}: {error}") from error


@dataclass(slots=True)
class GoogleTokens:
    """Verifies identity tokens of *accounts* (e-mail addresses, or ``*``) for one audience."""

    audience: str
    accounts: frozenset[str]
    fetch: Fetch = google_certs
    _certs: Certs = field(default_factory=dict[str, str])
    _fetched: float = float("-inf")
    _busy: anyio.Lock = field(default_factory=anyio.Lock)

    async def accepts(self, token: str) -> bool:
        """Return True if *token* is valid: signed by Google, not expired, for this audience and an allowed account."""
        if token.count(".") != 2:
            return False
        claims = await self._claims(token)
        if claims is None or claims.get("iss") not in ISSUERS:
            return False
        if ANYONE in self.accounts:
            return True
        return claims.get("email_verified") is True and str(claims.get("email")).lower() in self.accounts

    async def _claims(self, token: str) -> Mapping[str, Any] | None:
        from google.auth import jwt

        try:
            key = jwt.decode_header(token).get("kid")
        except (ValueError, AttributeError, RecursionError):
            return None
        if not isinstance(key, str):
            return None
        certs = await self._keys(key)
        if key not in certs:
            return None

        def verify() -> Mapping[str, Any] | None:
            try:
                return jwt.decode(token, certs=certs, audience=self.audience)
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
                return None  # google-auth's own errors are ValueErrors; others come from claims of a wrong type

        return await anyio.to_thread.run_sync(verify)

    async def _keys(self, wanted: str) -> Certs:
        async with self._busy:
            age = time.monotonic() - self._fetched
            if age > CERTS_SECONDS or (wanted not in self._certs and age > CERTS_AGAIN_SECONDS):
                self._certs = await self.fetch()
                self._fetched = time.monotonic()
            return self._certs


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
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        if scheme.lower() != "bearer" or not token:
            return False
        if self.token and hmac.compare_digest(_digest(token), _digest(self.token)):
            return True
        return self.google is not None and await self.google.accepts(token)


def _digest(text: str) -> bytes:
    """Hash to a fixed length, so that a comparison takes the same time for any two texts."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
