"""The net guard decides by address which hosts may be reached, for each connection and each redirect."""

from __future__ import annotations

import re
import ssl
from collections.abc import Sequence
from ipaddress import ip_address

import httpcore2
import httpx2
import pytest

from fireswarm.capabilities.web.addresses import as_number, why_refused
from fireswarm.capabilities.web.http_client import Guard, GuardedTransport
from fireswarm.errors import HostRefused
from tests.support.http import HttpServer, Request, Response
from tests.support.patience import PATIENCE_SECONDS

pytestmark = pytest.mark.anyio

PUBLIC = "93.184.216.34"


def client(guard: Guard) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=GuardedTransport(guard), follow_redirects=True, timeout=PATIENCE_SECONDS)


def hello(request: Request) -> Response:
    return Response(200, f"hello {request.headers['host'].partition(':')[0]}".encode())


@pytest.mark.parametrize(
    ("address", "reason"),
    [
        ("127.0.0.1", "loopback"),
        ("127.8.9.10", "loopback"),
        ("0.0.0.0", "unspecified"),
        ("10.1.2.3", "private"),
        ("172.16.0.1", "private"),
        ("192.168.1.1", "private"),
        ("169.254.169.254", "link-local"),
        ("100.64.0.1", "reserved"),
        ("100.100.100.200", "reserved"),
        ("192.0.0.192", "reserved"),
        ("168.63.129.16", "metadata"),
        ("224.0.0.1", "multicast"),
        ("255.255.255.255", "private"),
        ("::1", "loopback"),
        ("::", "unspecified"),
        ("fe80::1", "link-local"),
        ("fd00:ec2::254", "private"),
        ("ff02::1", "multicast"),
        ("fec0::1", "reserved"),
        ("::ffff:127.0.0.1", "loopback (127.0.0.1)"),
        ("::ffff:a9fe:a9fe", "link-local (169.254.169.254)"),
        ("::7f00:1", "loopback (127.0.0.1)"),
        ("64:ff9b::a00:1", "private (10.0.0.1)"),
        ("64:ff9b:1::808:808", "reserved"),
        ("2002:7f00:1::", "loopback (127.0.0.1)"),
        ("2001:0:4136:e378:8000:63bf:80ff:fffe", "private"),
        ("2606:4700::5efe:7f00:1", "loopback (127.0.0.1)"),
    ],
)
def test_private_addresses_are_blocked(address: str, reason: str) -> None:
    assert why_refused(ip_address(address)) == reason


@pytest.mark.parametrize("address", [PUBLIC, "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"])
def test_public_addresses_are_allowed(address: str) -> None:
    assert why_refused(ip_address(address)) == ""


@pytest.mark.parametrize("spelling", ["2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0x7f.0.0.0x1", "[::1]"])
def test_every_notation_of_an_address_is_parsed(spelling: str) -> None:
    number = as_number(spelling)
    assert number is not None and why_refused(number) == "loopback"
    assert as_number("example.com") is None and as_number("") is None


@pytest.mark.parametrize(
    "host",
    [
        "127.0.0.1",
        "localhost",
        "2130706433",
        "0x7f000001",
        "127.1",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:a9fe:a9fe]",
        "169.254.169.254",
        "[64:ff9b::7f00:1]",
    ],
)
async def test_requests_to_this_machine_are_blocked_under_any_name(host: str) -> None:
    async with HttpServer(hello).serving() as address, client(Guard()) as http:
        port = address.rpartition(":")[2]
        with pytest.raises(HostRefused, match="allow_hosts"):
            await http.get(f"http://{host}:{port}/")


async def test_octal_address_is_blocked_even_if_the_client_rejects_it() -> None:
    with pytest.raises(HostRefused, match="is 127.0.0.1, a loopback"):
        await Guard().addresses("0177.0.0.1", 80)


async def test_metadata_host_is_blocked_by_name() -> None:
    async def public(host: str, port: int) -> Sequence[str]:
        return [PUBLIC]

    async with client(Guard(resolve=public)) as http:
        for host in ("metadata.google.internal", "Metadata.Google.Internal."):
            with pytest.raises(HostRefused, match="metadata"):
                await http.get(f"http://{host}/computeMetadata/v1/")


async def test_host_with_one_private_address_is_blocked() -> None:
    async def mixed(host: str, port: int) -> Sequence[str]:
        return [PUBLIC, "10.0.0.7"]

    async with client(Guard(resolve=mixed)) as http:
        with pytest.raises(HostRefused, match=r"rebound.example is 10.0.0.7, a private address"):
            await http.get("http://rebound.example/")


async def test_connection_goes_to_the_checked_address(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [[PUBLIC], ["127.0.0.1"], ["127.0.0.1"]]
    asked: list[str] = []
    reached: list[str] = []

    async def rebinding(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return answers.pop(0)

    async def connect_tcp(self: object, host: str, *rest: object, **more: object) -> httpcore2.AsyncNetworkStream:
        reached.append(host)
        raise httpcore2.ConnectError("nobody there")

    monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", connect_tcp)
    async with client(Guard(resolve=rebinding)) as http:
        with pytest.raises(httpx2.ConnectError, match="nobody there"):
            await http.get("http://rebinding.example/")
        assert (asked, reached) == (["rebinding.example"], [PUBLIC])
        with pytest.raises(HostRefused):
            await http.get("http://rebinding.example/")
    assert reached == [PUBLIC]


async def test_redirect_to_a_private_address_is_blocked() -> None:
    async def local(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    def redirecting(request: Request) -> Response:
        port = request.headers["host"].rpartition(":")[2]
        return Response(302, b"", {"Location": f"http://inside.example:{port}/secret"})

    async with HttpServer(redirecting).serving() as address, client(Guard.of(["outside.example"], local)) as http:
        port = address.rpartition(":")[2]
        with pytest.raises(HostRefused, match="inside.example is 127.0.0.1, a loopback address"):
            await http.get(f"http://outside.example:{port}/")


async def test_allow_hosts_matches_exact_name_and_port() -> None:
    async def local(host: str, port: int) -> Sequence[str]:
        return ["127.0.0.1"]

    async with HttpServer(hello).serving() as address:
        port = address.rpartition(":")[2]
        for allowed in ("wiki.example", f"WIKI.example:{port}"):
            async with client(Guard.of([allowed], local)) as http:
                assert (await http.get(f"http://wiki.example:{port}/")).text == "hello wiki.example"
        for other in ("example", "notwiki.example", "wiki.example:1", "*.example"):
            async with client(Guard.of([other], local)) as http:
                with pytest.raises(HostRefused):
                    await http.get(f"http://wiki.example:{port}/")


async def test_setting_suggested_by_a_refusal_allows_the_host() -> None:
    for host in ("::1", "127.0.0.1"):
        with pytest.raises(HostRefused) as refused:
            await Guard().addresses(host, 8080)
        [named] = re.findall(r'allow_hosts: \["(.+?)"\]', str(refused.value))
        assert await Guard.of([named]).addresses(host, 8080) == [host]


async def test_unreachable_address_is_followed_by_the_next_one() -> None:
    async def two(host: str, port: int) -> Sequence[str]:
        return ["::1", "127.0.0.1"]

    async with HttpServer(hello).serving() as address, client(Guard.of(["two.example"], two)) as http:
        port = address.rpartition(":")[2]
        assert (await http.get(f"http://two.example:{port}/")).status_code == 200


async def test_certificate_is_verified_against_the_host_name(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[str | None] = []

    class Stream(httpcore2.AsyncNetworkStream):
        async def start_tls(
            self,
            ssl_context: ssl.SSLContext,
            server_hostname: str | None = None,
            timeout: float | None = None,  # noqa: ASYNC109 - the base class has it so
        ) -> httpcore2.AsyncNetworkStream:
            names.append(server_hostname)
            raise httpcore2.ConnectError("far enough")

    async def connect_tcp(self: object, host: str, *rest: object, **more: object) -> httpcore2.AsyncNetworkStream:
        names.append(host)
        return Stream()

    async def public(host: str, port: int) -> Sequence[str]:
        return [PUBLIC]

    monkeypatch.setattr(httpcore2.AnyIOBackend, "connect_tcp", connect_tcp)
    async with client(Guard(resolve=public)) as http:
        with pytest.raises(httpx2.ConnectError, match="far enough"):
            await http.get("https://secure.example/")
    assert names == [PUBLIC, "secure.example"]


async def test_host_without_an_address_raises_an_error() -> None:
    async def nowhere(host: str, port: int) -> Sequence[str]:
        raise OSError("no such host")

    async with client(Guard(resolve=nowhere)) as http:
        with pytest.raises(httpx2.ConnectError, match="nowhere.example: no such host"):
            await http.get("http://nowhere.example/")
