"""Who may use the console: browsers with a link's cookie, people whom Google names; and the token of their forms."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from fireswarm.api.auth import ANYONE, Access, GoogleTokens, bearer_of, email_of
from fireswarm.settings.swarm import ConsoleSettings

MAX_LINKS, MAX_VISITORS = 20, 100
"""Maximum number of unused links and of browsers; the oldest is dropped for a new one."""


IAP_HEADER = "x-goog-iap-jwt-assertion"
SEAL_CHARS = 22
"""Length of the seal of a message, 88 bits as hexadecimal digits."""


class ConsoleRole(StrEnum):
    """What a visitor may do: look, or also act."""

    VIEWER = "viewer"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Visitor:
    """A browser with a link, or a known person. No other site can read ``form_token``, which is in its forms."""

    role: ConsoleRole
    form_token: str = field(repr=False)

    @property
    def acts(self) -> bool:
        """True if it may do more than look."""
        return self.role is ConsoleRole.OPERATOR

    def seal(self, word: str) -> str:
        """Return *word* with a seal that only this console can make, and only for this visitor."""
        return f"{word}.{_mac(self.form_token.encode(), f'done {word}')[:SEAL_CHARS]}"

    def unseal(self, sealed: str) -> str:
        """Return the word of `seal`, or "" if the seal is not of this visitor."""
        word = sealed.partition(".")[0]
        return word if hmac.compare_digest(self.seal(word).encode(), sealed.encode("utf-8", "replace")) else ""


@dataclass(frozen=True, slots=True)
class Stranger:
    """A caller without a role in the console; ``email`` is "" for one whom nobody names."""

    email: str = ""


@dataclass(frozen=True, slots=True)
class KnownCallers:
    """Knows visitors without a link, by the headers of a request: by IAP's, or by that of the API.

    *access* is that of the API; the operator's token makes an operator. E-mail addresses get their role from *people*.
    """

    people: ConsoleSettings = ConsoleSettings()
    access: Access | None = None
    iap: GoogleTokens | None = None
    _key: bytes = field(default_factory=lambda: secrets.token_bytes(32), repr=False)

    async def find(self, headers: Mapping[str, str]) -> Visitor | Stranger:
        """Return the sender of a request. Raises StoreUnavailable if Google's keys are needed and cannot be fetched."""
        sender: Visitor | Stranger = Stranger()
        if self.iap is not None and (given := headers.get(IAP_HEADER, "")):
            sender = self._person(email_of(await self.iap.claims(given) or {}), anyone=True)
        if isinstance(sender, Stranger) and self.access is not None:
            known = await self._by_token(self.access, bearer_of(headers.get("authorization", "")))
            sender = known or sender
        return sender

    async def _by_token(self, access: Access, token: str) -> Visitor | Stranger | None:
        """Return the sender of a token of the API, None if it is not valid."""
        if access.has_token(token):
            return Visitor(ConsoleRole.OPERATOR, _mac(self._key, "token"))
        claims = await access.google.claims(token) if access.google is not None else None
        if access.google is None or claims is None or claims.get("email_verified") is not True:
            return None
        # anybody gets a token for any audience: only a service in front of this one makes "*" mean somebody
        return self._person(email_of(claims), anyone=ANYONE in access.google.accounts)

    def _person(self, email: str, *, anyone: bool) -> Visitor | Stranger:
        for role, people in ((ConsoleRole.OPERATOR, self.people.operators), (ConsoleRole.VIEWER, self.people.viewers)):
            if email and _includes(people, email, anyone=anyone):
                return Visitor(role, _mac(self._key, f"email {email}"))
        return Stranger(email)


@dataclass(slots=True)
class Entrance:
    """Gives links and cookies of one console. Only their hashes are kept; all end with the process."""

    cookie: str = field(default_factory=lambda: f"fireswarm_{secrets.token_hex(4)}")
    _links: dict[str, ConsoleRole] = field(default_factory=dict[str, ConsoleRole])
    _visitors: dict[str, Visitor] = field(default_factory=dict[str, Visitor])

    def new_link(self, role: ConsoleRole = ConsoleRole.OPERATOR) -> str:
        """Return the secret of a link that one browser can use once."""
        secret = secrets.token_urlsafe(32)
        _keep(self._links, _digest(secret), role, MAX_LINKS)
        return secret

    def enter(self, secret: str) -> str | None:
        """Use a link up, and return the value of the cookie for its browser; None for an unknown or used link."""
        role = self._links.pop(_digest(secret), None)
        if role is None:
            return None
        value = secrets.token_urlsafe(32)
        _keep(self._visitors, _digest(value), Visitor(role, secrets.token_urlsafe(32)), MAX_VISITORS)
        return value

    def visitor(self, value: str) -> Visitor | None:
        """Return the browser with this cookie, or None."""
        return self._visitors.get(_digest(value)) if value else None


def _includes(people: Collection[str], email: str, *, anyone: bool) -> bool:
    """Return True if one of *people* is *email*, its domain, or with *anyone* ``*``.

    A name before the @ that IAP puts the source of another identity into, after a colon, is of no domain.
    """
    name, _, domain = email.rpartition("@")
    of_domain = bool(name) and not set(name) & set('@:/"') and f"*@{domain}" in people
    return email in people or of_domain or (anyone and ANYONE in people)


def _mac(key: bytes, text: str) -> str:
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()


def _keep[T](known: dict[str, T], name: str, value: T, most: int) -> None:
    known[name] = value
    while len(known) > most:
        del known[next(iter(known))]


def _digest(text: str) -> str:
    """Hash a secret: a search by its hash tells nothing of it by the time it takes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
