"""Accounts at two clouds, on loopback: tokens that a service account gets for a signed request, and keys that sign.

The token server checks the signature of the request for a token; tokens expire and can be revoked.
"""

from __future__ import annotations

import base64
import binascii
import functools
import json
import re
import struct
import time
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa
from google.auth import jwt

PROJECT, LOCATION, REGION = "test-project-1", "europe-west4", "eu-west-1"
ACCOUNT = "runner@test-project-1.iam.gserviceaccount.com"
AWS_KEY, AWS_SECRET = "AKIATESTTESTTESTTEST", "an-aws-secret-0123456789"
BEARER = "bedrock-bearer-0123456789"
AWS_ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": AWS_KEY,
    "AWS_SECRET_ACCESS_KEY": AWS_SECRET,
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": "/nonexistent",
    "AWS_SHARED_CREDENTIALS_FILE": "/nonexistent",
}
GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
METADATA = "/computeMetadata/v1/"


@functools.cache
def private_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


def service_account_file(folder: Path, url: str, *, project: str | None = PROJECT) -> Path:
    """Write the key file of a service account whose token server is at *url*."""
    pem = private_key().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    content = {
        "type": "service_account",
        "private_key_id": "1",
        "private_key": pem.decode(),
        "client_email": ACCOUNT,
        "token_uri": f"{url}/token",
        **({"project_id": project} if project else {}),
    }
    path = folder / "service-account.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


@dataclass(slots=True)
class TokenServer:
    """Gives tokens that last ``seconds``; ``failures`` are answered first, as status and error."""

    seconds: int = 3_600
    failures: list[tuple[int, str]] = field(default_factory=list)
    issued: dict[str, float] = field(default_factory=dict)
    asked: int = 0

    def answer(self, path: str, headers: Mapping[str, str], raw: bytes) -> tuple[int, dict[str, Any] | str] | None:
        """Answer a request for a token, by a service account or through the metadata server; None for others."""
        if path.startswith(METADATA) or path == "/":
            return self._metadata(path, headers)
        if path != "/token":
            return None
        self.asked += 1
        if self.failures:
            status, error = self.failures.pop(0)
            return status, {"error": error, "error_description": f"as told: {error}"}
        form = dict(urllib.parse.parse_qsl(raw.decode()))
        public = private_key().public_key()
        pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
        claims: dict[str, Any] = dict(jwt.decode(form.get("assertion", ""), certs=pem, verify=True))  # pyright: ignore
        if form.get("grant_type") != GRANT or claims["iss"] != ACCOUNT or "cloud-platform" not in claims["scope"]:
            return 400, {"error": "invalid_grant"}
        return 200, {"access_token": self._issue(), "expires_in": self.seconds, "token_type": "Bearer"}

    def _metadata(self, path: str, headers: Mapping[str, str]) -> tuple[int, dict[str, Any] | str]:
        """Answer as Cloud Run's metadata server does."""
        if headers.get("metadata-flavor") != "Google":
            return 403, "no Metadata-Flavor"
        path = path.partition("?")[0]
        if path.endswith("/token"):
            self.asked += 1
            if self.failures:
                status, error = self.failures.pop(0)
                return status, error
            return 200, {"access_token": self._issue(), "expires_in": self.seconds, "token_type": "Bearer"}
        if path.endswith("project/project-id"):
            return 200, PROJECT
        if path.endswith("universe/universe-domain"):
            return 200, "googleapis.com"
        if "service-accounts/" in path:
            return 200, {"email": ACCOUNT, "scopes": ["https://www.googleapis.com/auth/cloud-platform"]}
        return 200, ""

    def _issue(self) -> str:
        token = f"token-{len(self.issued)}"
        self.issued[token] = time.time() + self.seconds
        return token

    def fault(self, headers: Mapping[str, str]) -> str:
        """Return the reason why the token in *headers* is refused, or ""."""
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme != "Bearer" or token not in self.issued:
            return "Request had invalid authentication credentials. Expected OAuth 2 access token"
        return "The access token expired" if self.issued[token] < time.time() else ""

    def revoke(self) -> None:
        """Refuse all tokens issued so far."""
        self.issued = {token: 0.0 for token in self.issued}


def signature_fault(method: str, path: str, headers: Mapping[str, str], raw: bytes) -> str:
    """Return the reason why a request to Bedrock is refused: its signature is computed anew, with the same secret."""
    given = headers.get("authorization", "")
    if given == f"Bearer {BEARER}":
        return ""
    fields: dict[str, str] = dict(re.findall(r"(\w+)=([^, ]+)", given))
    date = headers.get("x-amz-date", "")
    if fields.get("Credential") != f"{AWS_KEY}/{date[:8]}/{REGION}/bedrock/aws4_request":
        return "The security token included in the request is invalid"
    signed = {name: headers[name] for name in fields.get("SignedHeaders", "").split(";") if name in headers}
    request = AWSRequest(method=method, url=f"http://{headers['host']}{path}", headers=signed, data=raw)
    request.context["timestamp"] = date  # pyright: ignore
    signer: Any = SigV4Auth(Credentials(AWS_KEY, AWS_SECRET), "bedrock", REGION)
    expected = signer.signature(signer.string_to_sign(request, signer.canonical_request(request)), request)
    return "" if fields.get("Signature") == expected else "The request signature we calculated does not match"


def event_frame(content: bytes, headers: Mapping[str, str]) -> bytes:
    """Return one message of AWS's event stream: lengths, headers, content, and two checksums."""
    packed = b"".join(
        bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
        for name, value in headers.items()
    )
    prelude = struct.pack(">II", len(packed) + len(content) + 16, len(packed))
    begin = prelude + struct.pack(">I", binascii.crc32(prelude)) + packed + content
    return begin + struct.pack(">I", binascii.crc32(begin))


def chunk_frame(event: bytes) -> bytes:
    """Return an event of the model as Bedrock wraps it."""
    content = json.dumps({"bytes": base64.b64encode(event).decode()}).encode()
    kind = {":event-type": "chunk", ":content-type": "application/json", ":message-type": "event"}
    return event_frame(content, kind)


def exception_frame(kind: str, message: str) -> bytes:
    """Return an error in the middle of Bedrock's stream."""
    headers = {":exception-type": kind, ":content-type": "application/json", ":message-type": "exception"}
    return event_frame(json.dumps({"message": message}).encode(), headers)
