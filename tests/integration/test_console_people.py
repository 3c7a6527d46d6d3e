"""Who may use the console without a link: people whom IAP or a token of Google names, and the operator's token."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any

import httpx2
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from google.auth import crypt, jwt
from pydantic import ValidationError

from fireswarm.api.application import make_application, protected_application
from fireswarm.api.auth import CERTS_AGAIN_SECONDS, CERTS_RETRY_SECONDS, Access, GoogleTokens, iap_keys, iap_tokens
from fireswarm.api.console.access import IAP_HEADER, KnownCallers, Visitor
from fireswarm.api.console.application import ACTIONS, PAGES, beside_api, make_console
from fireswarm.api.console.visit import WebConsole
from fireswarm.api.session import ApiSession
from fireswarm.errors import StoreUnavailable
from fireswarm.redaction import Redactor
from fireswarm.settings.swarm import ConsoleSettings
from tests.integration.test_api_access import AUDIENCE, CERTIFICATE, token
from tests.support.api import TOKEN
from tests.support.http import HttpServer, Response
from tests.support.swarm import SwarmRig, open_test_swarm

pytestmark = pytest.mark.anyio

IAP_AUDIENCE = "/projects/1234/locations/europe-west1/services/swarm"
ADA, VIC, EVE = "ada@example.com", "vic@example.com", "eve@evil.example"
PEOPLE = ConsoleSettings(operators=(ADA, "bob@example.com"), viewers=(VIC, ADA))
HOST = "swarm.example"


def es_key() -> tuple[crypt.EsSigner, str]:
    """Return a signer of IAP's kind, and its public key as Google publishes it."""
    private = ec.generate_private_key(ec.SECP256R1())
    public = private.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return crypt.EsSigner(private, "iap-1"), public.decode()


SIGNER, PUBLIC = es_key()
OTHER_SIGNER, _ = es_key()


def assertion(email: Any = ADA, signer: Any = SIGNER, *, key_id: str = "iap-1", **changed: Any) -> str:
    now = int(time.time())
    claims = {
        "iss": "https://cloud.google.com/iap",
        "aud": IAP_AUDIENCE,
        "email": email,
        "sub": "google:1",
    }
    return jwt.encode(signer, {**claims, "iat": now, "exp": now + 600, **changed}, key_id=key_id).decode()


def by_hand(head: Mapping[str, Any], sign: Callable[[bytes], bytes]) -> str:
    """Return a token with any head, signed in any way."""
    claims = assertion().split(".")[1]
    first = base64.urlsafe_b64encode(json.dumps(head).encode()).rstrip(b"=").decode()
    signature = base64.urlsafe_b64encode(sign(f"{first}.{claims}".encode())).rstrip(b"=").decode()
    return f"{first}.{claims}.{signature}"


class Keys:
    """Google's keys: counts how often they are fetched, and can be away."""

    def __init__(self, keys: Mapping[str, str]) -> None:
        self.keys, self.fetched, self.away = dict(keys), 0, False

    async def fetch(self) -> dict[str, str]:
        self.fetched += 1
        if self.away:
            raise StoreUnavailable("cannot fetch Google's public keys")
        return self.keys


class Site:
    """A console and an API of one swarm, as another machine reaches them."""

    def __init__(self, swarm: SwarmRig, people: ConsoleSettings = PEOPLE, accounts: tuple[str, ...] = (ADA,)) -> None:
        self.swarm, self.keys, self.certs = swarm, Keys({"iap-1": PUBLIC}), Keys({"key-1": CERTIFICATE})
        google = GoogleTokens(AUDIENCE, frozenset(accounts), self.certs.fetch)
        access = Access(TOKEN, google)
        callers = KnownCallers(people, access, iap_tokens(IAP_AUDIENCE, self.keys.fetch))
        self.console = WebConsole(swarm.client, Redactor((TOKEN,)), callers=callers)
        self.service = ApiSession(swarm.client, Redactor((TOKEN,)))
        api = protected_application(self.service, access, hosts=None)
        app = beside_api(api, make_console(self.console, None))
        self.transport = httpx2.ASGITransport(app=app, raise_app_exceptions=False)

    async def call(self, method: str, path: str, form: Any = None, **headers: str) -> httpx2.Response:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        async with httpx2.AsyncClient(transport=self.transport, base_url=f"http://{HOST}") as client:
            return await client.request(method, path, data=form, headers=named)

    async def form_token(self, **headers: str) -> str:
        page = (await self.call("GET", "/ui/new", **headers)).text
        [found] = set(re.findall(r'name="token" value="([^"]+)"', page))
        return found

    async def submit(self, form_token: str, **headers: str) -> int:
        form = {"token": form_token, "objective": "count", "role": "scout"}
        return (await self.call("POST", "/ui/tasks", form, **headers)).status_code


@pytest.fixture
async def site() -> AsyncGenerator[Site]:
    async with open_test_swarm(session="s1") as swarm:
        yield Site(swarm)


def iap(email: Any = ADA, **changed: Any) -> dict[str, str]:
    return {IAP_HEADER: assertion(email, **changed)}


def bearer(given: str) -> dict[str, str]:
    return {"authorization": f"Bearer {given}"}


async def test_operator_of_iap_acts_without_a_link_and_google_keys_are_fetched_once(site: Site) -> None:
    given = iap("Ada@Example.com")
    form_token = await site.form_token(**given)
    https = {"origin": f"https://{HOST}", "x-forwarded-proto": "https", "sec-fetch-site": "same-origin"}
    assert await site.submit(form_token, **given, **https) == 303
    assert await site.form_token(**iap()) == form_token, "another assertion of the same person"
    assert site.keys.fetched == 1
    [task] = await site.swarm.client.tasks()
    assert task.created_by == "console"


async def test_viewer_of_iap_looks_and_changes_nothing(site: Site) -> None:
    page = await site.call("GET", "/ui/tasks", **iap(VIC))
    assert page.status_code == 200 and "New objective" not in page.text
    visitor = await site.console.callers.find(iap(VIC))
    assert isinstance(visitor, Visitor) and await site.submit(visitor.form_token, **iap(VIC)) == 403
    assert await site.swarm.client.tasks() == []


async def test_operators_token_and_google_identity_tokens_open_the_console(site: Site) -> None:
    for given in (bearer(TOKEN), bearer(token()), bearer(token(email="bob@example.com"))):
        assert await site.submit(await site.form_token(**given), **given) == 303
    assert (await site.call("GET", "/ui/", **bearer(token(email=VIC)))).status_code == 200
    for given in (bearer("wrong-token-of-the-same-length"), bearer(token(email=ADA, email_verified=False))):
        assert (await site.call("GET", "/ui/", **given)).status_code == 401
    assert (await site.call("GET", "/ui/", **bearer(token(email=EVE)))).status_code == 403
    assert (await site.call("GET", "/v1/status", **bearer(token(email=VIC)))).status_code == 401, "not an API account"


PAST = int(time.time()) - 10_000
FORGED: dict[str, Callable[[], str]] = {
    "nothing": lambda: "",
    "alg none": lambda: by_hand({"alg": "none", "kid": "iap-1"}, lambda _: b""),
    "HS256 with the public key": lambda: by_hand(
        {"alg": "HS256", "kid": "iap-1"}, lambda text: hmac.digest(PUBLIC.encode(), text, hashlib.sha256)
    ),
    "RS256 head with an ES256 signature": lambda: by_hand({"alg": "RS256", "kid": "iap-1"}, SIGNER.sign),
    "ES384 head": lambda: by_hand({"alg": "ES384", "kid": "iap-1"}, SIGNER.sign),
    "no key id": lambda: by_hand({"alg": "ES256"}, SIGNER.sign),
    "signature of another key": lambda: assertion(signer=OTHER_SIGNER),
    "no signature": lambda: assertion().rpartition(".")[0] + ".",
    "another audience": lambda: assertion(aud="/projects/1234/locations/europe-west1/services/other"),
    "no audience": lambda: assertion(aud=None),
    "expired": lambda: assertion(iat=PAST, exp=PAST + 600),
    "of the future": lambda: assertion(iat=int(time.time()) + 600, exp=int(time.time()) + 900),
    "another issuer": lambda: assertion(iss="https://accounts.google.com"),
    "issuer that is a list": lambda: assertion(iss=["https://cloud.google.com/iap"]),
    "no address": lambda: assertion(None),
    "address that is a list": lambda: assertion([ADA]),
    "address with the sign of Kelvin": lambda: assertion("\u212aim@example.com"),
    "identity token": token,
    "no token": lambda: "a.b.c",
}


@pytest.mark.parametrize("name", FORGED)
async def test_forged_header_of_iap_opens_nothing(site: Site, name: str) -> None:
    given = {IAP_HEADER: FORGED[name]()}
    for method, path in (("GET", "/ui/"), ("GET", "/ui/events"), ("POST", "/ui/tasks")):
        assert (await site.call(method, path, {} if method == "POST" else None, **given)).status_code == 401
    assert await site.swarm.client.tasks() == []


async def test_person_without_a_role_is_told_so_and_sees_nothing(site: Site) -> None:
    await site.swarm.submit("private words", role="scout")
    answer = await site.call("GET", "/ui/tasks", **iap("<b>eve</b>@evil.example"))
    assert answer.status_code == 403 and "console.viewers" in answer.text
    assert "private words" not in answer.text and "<b>eve" not in answer.text


@pytest.mark.parametrize(
    ("people", "email", "role"),
    [
        (("*@example.com",), "eve@example.com", 200),
        (("*@example.com",), "eve@sub.example.com", 403),
        (("*@example.com",), "eve@evil-example.com", 403),
        (("*@example.com",), "eve@evil.example@example.com", 403),
        (("*@example.com",), "securetoken.google.com/evil/tenant:eve@example.com", 403),
        (("*@example.com",), "@example.com", 403),
        (("*",), EVE, 200),
        ((), ADA, 403),
    ],
)
async def test_people_of_a_domain_are_those_of_this_domain_only(people: tuple[str, ...], email: str, role: int) -> None:
    async with open_test_swarm(session="s1") as swarm:
        site = Site(swarm, ConsoleSettings(viewers=people))
        assert (await site.call("GET", "/ui/", **iap(email))).status_code == role


@pytest.mark.parametrize(("accounts", "status"), [(("*",), 200), ((ADA,), 403)])
async def test_star_means_any_google_token_only_if_a_service_in_front_checks_them(
    accounts: tuple[str, ...], status: int
) -> None:
    async with open_test_swarm(session="s1") as swarm:
        site = Site(swarm, ConsoleSettings(viewers=("*",)), accounts)
        assert (await site.call("GET", "/ui/", **bearer(token(email=EVE)))).status_code == status


@pytest.mark.parametrize("wrong", ["", "ada", "*example.com", "*@", "@x.org", "a@b@c", "**@x.org", "ada@*", "a b@c"])
def test_list_of_people_takes_addresses_only(wrong: str) -> None:
    with pytest.raises(ValidationError, match="no e-mail address"):
        ConsoleSettings(operators=(wrong,))
    assert ConsoleSettings(operators=("Ada@Example.COM",)).operators == (ADA,)


async def test_form_of_another_identity_process_or_origin_is_refused(site: Site) -> None:
    mine, others = await site.form_token(**iap()), await site.form_token(**iap("bob@example.com"))
    of_another_process = await Site(site.swarm).form_token(**iap())
    assert len({mine, others, of_another_process}) == 3
    for wrong in (others, of_another_process, await site.form_token(**bearer(TOKEN)), "", mine[:-1]):
        assert await site.submit(wrong, **iap()) == 403
    proxied = {**iap(), "x_forwarded_proto": "https"}
    for origin in ("https://evil.example", "null", f"http://{HOST}", f"https://{HOST}:8443", f"https://a@{HOST}"):
        assert await site.submit(mine, **proxied, origin=origin) == 403, origin
    assert await site.submit(mine, **iap(), origin=f"https://{HOST}") == 403, "the scheme is http"
    assert await site.submit(mine, **proxied, sec_fetch_site="cross-site") == 403
    assert await site.swarm.client.tasks() == []
    assert await site.submit(mine, **proxied, origin=f"https://{HOST}") == 303


async def test_header_of_iap_without_its_audience_counts_for_nothing(site: Site) -> None:
    console = WebConsole(site.swarm.client, Redactor(()), callers=KnownCallers(PEOPLE, Access(TOKEN)))
    transport = httpx2.ASGITransport(app=make_console(console, None))
    async with httpx2.AsyncClient(transport=transport, base_url=f"http://{HOST}") as client:
        assert (await client.get("/ui/", headers=iap())).status_code == 401


async def test_repeated_header_of_iap_is_refused(site: Site) -> None:
    async with httpx2.AsyncClient(transport=site.transport, base_url=f"http://{HOST}") as client:
        twice = [(IAP_HEADER, assertion()), (IAP_HEADER, assertion(VIC))]
        assert (await client.get("/ui/", headers=twice)).status_code == 400


async def test_unknown_key_fetches_google_keys_once_a_minute_and_a_new_key_is_found(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_signer, new_public = es_key()
    rotated = {IAP_HEADER: assertion(signer=new_signer, key_id="iap-2")}
    moment = time.monotonic()

    def at(passed: float) -> None:
        monkeypatch.setattr("fireswarm.api.auth.time.monotonic", lambda: moment + passed)

    at(0)
    for _ in range(3):
        assert (await site.call("GET", "/ui/", **rotated)).status_code == 401
    assert site.keys.fetched == 1
    site.keys.keys["iap-2"] = new_public
    del site.keys.keys["iap-1"]
    at(CERTS_AGAIN_SECONDS + 1)
    assert (await site.call("GET", "/ui/", **rotated)).status_code == 200
    assert (await site.call("GET", "/ui/", **iap())).status_code == 401, "the old key is withdrawn"
    assert site.keys.fetched == 2


async def test_key_server_that_is_away_lets_nobody_in_and_is_asked_at_a_limited_rate(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = time.monotonic()
    monkeypatch.setattr("fireswarm.api.auth.time.monotonic", lambda: moment)
    site.keys.away = True
    for method, path in (("GET", "/ui/"), ("POST", "/ui/tasks"), ("GET", "/ui/events"), ("GET", "/ui/nothing")):
        answer = await site.call(method, path, **iap())
        assert answer.status_code == 503 and "frame-ancestors" in answer.headers["content-security-policy"]
    assert site.keys.fetched == 1
    site.keys.away = False
    monkeypatch.setattr("fireswarm.api.auth.time.monotonic", lambda: moment + CERTS_RETRY_SECONDS)
    assert (await site.call("GET", "/ui/", **iap())).status_code == 200
    site.keys.away = True  # known keys go on without it
    monkeypatch.setattr("fireswarm.api.auth.time.monotonic", lambda: moment + CERTS_AGAIN_SECONDS + 10)
    unknown = {IAP_HEADER: assertion(key_id="iap-9")}
    assert (await site.call("GET", "/ui/", **unknown)).status_code == 503
    assert (await site.call("GET", "/ui/", **iap())).status_code == 200


@pytest.mark.parametrize("content", [b'["iap-1"]', b'{"iap-1": 7}', b"<"])
async def test_keys_of_iap_are_fetched_over_http_and_must_be_keys(
    content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [Response(200, json.dumps({"iap-1": PUBLIC}).encode()), Response(200, content)]
    async with HttpServer(lambda _: answers.pop(0)).serving() as url:
        monkeypatch.setattr("fireswarm.api.auth.IAP_KEYS_URL", url)
        assert await iap_keys() == {"iap-1": PUBLIC}
        with pytest.raises(StoreUnavailable, match="cannot fetch"):
            await iap_keys()


async def test_link_of_anyone_makes_a_page_say_nothing(site: Site) -> None:
    given = iap()
    form_token = await site.form_token(**given)
    form = {"token": form_token, "objective": "count", "role": "scout"}
    done = (await site.call("POST", "/ui/tasks", form, **given)).headers["location"].partition("?")[2]
    for _ in range(2):  # a page may be loaded again
        assert "The objective is submitted." in (await site.call("GET", f"/ui/?{done}", **given)).text
    other = done.replace("submitted", "approved")
    for query in ("done=submitted", "done=approved", other, f"{done}0", done[:-1], "done=%ff"):
        page = await site.call("GET", f"/ui/?{query}", **given)
        assert page.status_code == 200 and '<p class="done"' not in page.text, query
    assert '<p class="done"' not in (await site.call("GET", f"/ui/?{done}", **iap(VIC))).text, "of another person"


def all_paths(site: Site) -> list[tuple[str, str]]:
    """Method and path of each route of the console and the API."""
    paths = [("GET", f"/ui{path}") for path in (*PAGES, "/events", "/enter", "/static/console.css", "")]
    paths += [("POST", f"/ui{path}") for path in ACTIONS]
    for path, operations in make_application(site.service).openapi()["paths"].items():
        paths += [(method.upper(), path) for method in operations]
    return [(method, re.sub(r"\{[^}]*\}", "x", path)) for method, path in paths]


@pytest.mark.parametrize("sign", ["%0a", "%0d%0a", "%00", "%1b", "%7f", "%C2%85", "%E2%80%A8"])
async def test_path_with_control_characters_is_refused_on_every_route(site: Site, sign: str) -> None:
    paths = all_paths(site)
    assert len(paths) > 50
    for method, path in paths:
        for tried in (f"{path}{sign}", f"/{sign}{path[1:]}"):
            answer = await site.call(method, tried, **bearer(TOKEN))
            assert answer.status_code in (400, 404), (method, tried, answer.status_code)
    assert await site.swarm.client.tasks() == []
