"""A failed connection to a provider names its cause, with the real SDKs against servers on this machine."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from fireswarm.contracts.llm.chat import ChatMessage, ChatRequest
from fireswarm.errors import ModelUnavailable
from fireswarm.runs.model_adapters import make_model
from fireswarm.settings import load_agent_settings

pytestmark = pytest.mark.anyio

PROVIDERS = ["anthropic", "gemini", "openai"]
KEYS = {"ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k", "OPENAI_API_KEY": "k"}
SECRET = "user:s3cret"
DAY = timedelta(days=1)


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


async def cause(provider: str, base_url: str) -> str:
    """Return the error of a request to *base_url*."""
    values = {
        "model.provider": provider,
        "model.name": "some-model",
        f"model.providers.{provider}.base_url": base_url,
        "model.request_timeout_seconds": 3,
    }
    model = make_model(load_agent_settings(None, values), Path(), KEYS)
    with pytest.raises(ModelUnavailable) as caught:
        await model.complete(ChatRequest("", (ChatMessage("user", "hello"),), 10))
    return str(caught.value)


@contextmanager
def server(answer: bytes = b"", *, tls: ssl.SSLContext | None = None, silent: bool = False) -> Generator[int]:
    """Serve *answer* to every connection; yields the port."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        held: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = listening.accept()
                except OSError:
                    return
                held.append(connection)
                if silent:
                    continue
                try:
                    if tls is not None:
                        connection = tls.wrap_socket(connection, server_side=True)
                    connection.recv(65_536)
                    connection.sendall(answer)
                    connection.close()
                except OSError:
                    connection.close()

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield listening.getsockname()[1]
        listening.shutdown(socket.SHUT_RDWR)
        for connection in held:
            connection.close()
    thread.join(5)


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return listening.getsockname()[1]


def certificate(folder: Path, *, begins: timedelta = -DAY, ends: timedelta = DAY, name: str = "localhost") -> Path:
    """Write a self-signed certificate with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now + begins)
        .not_valid_after(now + ends)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    file = folder / "server.pem"
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    file.write_bytes(built.public_bytes(serialization.Encoding.PEM) + secret)
    return file


def tls_of(file: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    return context


@pytest.mark.parametrize("provider", PROVIDERS)
class TestCauses:
    async def test_closed_port(self, provider: str, closed_port: int) -> None:
        told = await cause(provider, f"http://127.0.0.1:{closed_port}")
        assert f"127.0.0.1:{closed_port} refused the connection, nothing listens there: check base_url" in told

    async def test_unknown_name(self, provider: str) -> None:
        told = await cause(provider, "https://model.invalid")
        assert "the name of model.invalid cannot be resolved: check base_url and the network" in told

    async def test_silent_server(self, provider: str) -> None:
        with server(silent=True) as port:
            assert f"127.0.0.1:{port} did not answer in time" in await cause(provider, f"http://127.0.0.1:{port}")

    async def test_self_signed_certificate(self, provider: str, tmp_path: Path) -> None:
        with server(tls=tls_of(certificate(tmp_path))) as port:
            told = await cause(provider, f"https://localhost:{port}")
        assert "the certificate of localhost is not trusted (self-signed certificate)" in told
        assert "set SSL_CERT_FILE to a file with its CA certificate" in told

    async def test_expired_certificate(self, provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = certificate(tmp_path, begins=-2 * DAY, ends=-DAY)
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        with server(tls=tls_of(file)) as port:
            told = await cause(provider, f"https://localhost:{port}")
        assert "the certificate of localhost is not valid now, it has expired" in told

    async def test_certificate_of_another_name(
        self, provider: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        file = certificate(tmp_path, name="other.example")
        monkeypatch.setenv("SSL_CERT_FILE", str(file))
        with server(tls=tls_of(file)) as port:
            told = await cause(provider, f"https://localhost:{port}")
        assert "the certificate of localhost is not accepted: Hostname mismatch" in told

    async def test_plain_port_instead_of_tls(self, provider: str) -> None:
        with server(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n") as port:
            told = await cause(provider, f"https://localhost:{port}")
        assert f"localhost:{port} does not speak TLS on this port: check the scheme" in told

    @pytest.mark.parametrize(
        ("status", "words"), [(407, "wants a user and a password (407): put "), (403, "refused the connection (403)")]
    )
    @pytest.mark.parametrize("variable", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
    async def test_proxy_that_refuses(
        self, provider: str, variable: str, status: int, words: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        with server(f"HTTP/1.1 {status} No\r\nContent-Length: 0\r\n\r\n".encode()) as port:
            monkeypatch.setenv(variable, f"http://{SECRET}@127.0.0.1:{port}")
            told = await cause(provider, "https://model.example")
        assert f"the proxy 127.0.0.1:{port} of {variable} {words}" in told
        assert "s3cret" not in told

    async def test_proxy_on_a_closed_port(
        self, provider: str, closed_port: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTPS_PROXY", f"http://{SECRET}@127.0.0.1:{closed_port}")
        told = await cause(provider, "https://model.example")
        assert f"the proxy 127.0.0.1:{closed_port} of HTTPS_PROXY refused the connection, nothing listens there" in told
        assert "check HTTPS_PROXY" in told
        assert "s3cret" not in told

    async def test_server_that_needs_no_proxy(
        self, provider: str, closed_port: int, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        assert "HTTP_PROXY" not in await cause(provider, f"http://127.0.0.1:{closed_port}")
