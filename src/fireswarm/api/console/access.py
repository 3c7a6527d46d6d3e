"""Who may use the console: one-time links, the cookie that a link gives, and the token of its forms."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass, field
from enum import StrEnum

MAX_LINKS, MAX_VISITORS = 20, 100
"""Maximum number of unused links and of browsers; the oldest is dropped for a new one."""


class ConsoleRole(StrEnum):
    """What a browser may do: look, or also act."""

    VIEWER = "viewer"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True)
class Visitor:
    """A browser that entered by a link. ``form_token`` is in each of its forms: no other site can read it."""

    role: ConsoleRole
    form_token: str = field(repr=False)

    @property
    def acts(self) -> bool:
        """True if it may do more than look."""
        return self.role is ConsoleRole.OPERATOR


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


def _keep[T](known: dict[str, T], name: str, value: T, most: int) -> None:
    known[name] = value
    while len(known) > most:
        del known[next(iter(known))]


def _digest(text: str) -> str:
    """Hash a secret: a search by its hash tells nothing of it by the time it takes."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
