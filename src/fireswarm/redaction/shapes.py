"""Published formats of credentials, as data. Every pattern takes linear time; a repository test measures it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """One format: a text without any of *hints* has no such credential, so the pattern is not tried.

    The group ``secret`` is what is secret, or the whole match if there is no such group.
    """

    name: str
    hints: tuple[str, ...]
    pattern: re.Pattern[str]
    counts: Callable[[str], bool] | None = None
    """Says of a match whether it is a credential."""

    begins: str = ""
    """Text at which the credential begins within the match."""


def _shape(name: str, hints: str, pattern: str, counts: Callable[[str], bool] | None = None) -> Shape:
    return Shape(name, tuple(hints.split()), re.compile(pattern), counts)


_START = r"(?<![A-Za-z0-9])"


def _random(text: str) -> bool:
    """Return True unless the text after ``sk-`` is words with dashes, as in names of CSS classes."""
    return any(char.isdigit() for char in text) or "-" not in text.removeprefix("sk-")


SHAPES = (
    _shape("Anthropic", "sk-ant-", rf"{_START}sk-ant-[\w-]{{16,}}+"),
    _shape("OpenAI and others", "sk-", rf"{_START}sk-(?:proj|svcacct|admin|or-v1)-[\w-]{{16,}}+"),
    _shape("keys of model providers", "sk-", rf"{_START}sk-[\w-]{{20,}}+", _random),
    _shape("Stripe", "_live_ _test_", rf"{_START}[srp]k_(?:live|test)_[A-Za-z0-9]{{10,}}+"),
    _shape("webhook secret", "whsec_", rf"{_START}whsec_[A-Za-z0-9+/=]{{20,}}+"),
    _shape("Google API key", "AIza", r"AIza[\w-]{30,}+"),
    _shape("Google OAuth access token", "ya29.", r"ya29\.[\w-]{20,}+"),
    _shape("Google OAuth client secret", "GOCSPX-", r"GOCSPX-[\w-]{20,}+"),
    _shape("Google refresh token", "1//0", rf"{_START}1//0[\w-]{{30,}}+"),
    _shape("GitHub", "ghp_ gho_ ghu_ ghs_ ghr_", r"gh[pousr]_[A-Za-z0-9]{30,}+"),
    _shape("GitHub fine-grained token", "github_pat_", r"github_pat_\w{30,}+"),
    _shape("GitLab", "glpat- gldt- glrt- glptt- glcbt- glsoat- glft-", r"gl(?:pat|dt|rt|ptt|cbt|soat|ft)-[\w.-]{18,}+"),
    _shape("Slack", "xox", r"xox[abceoprs](?:\.xox[a-z])?-[A-Za-z0-9-]{10,}+"),
    _shape("Slack app", "xapp-", rf"{_START}xapp-\d-[A-Za-z0-9-]{{10,}}+"),
    _shape(
        "Slack webhook", "hooks.slack.com/",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[\w/]{20,}+)",
    ),
    _shape("Discord webhook", "/api/webhooks/", r"/api/webhooks/\d{15,20}/(?P<secret>[\w-]{40,}+)"),
    _shape("AWS access key id", "AKIA ASIA ABIA ACCA", r"A(?:KIA|SIA|BIA|CCA)[0-9A-Z]{16}"),
    Shape(
        "JSON web token", (".eyJ",), re.compile(r"(?<![\w-])[\w-]{11,}+\.eyJ[\w-]{8,}+(?:\.[\w-]{8,}+){1,2}"),
        begins="eyJ",
    ),
    _shape(
        "private key", "PRIVATE",
        r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----[\s\S]*?"
        r"(?:-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|\Z)",
    ),
    _shape("PuTTY key", "Private-Lines:", r"Private-Lines: \d{1,4}(?P<secret>(?:\s{1,2}+[A-Za-z0-9+/=]{8,}+)+)"),
    _shape("age", "AGE-SECRET-KEY-", r"AGE-SECRET-KEY-(?:PQ-)?1[A-Z0-9]{40,}+"),
    _shape(
        "Azure", "AccountKey= SharedAccessKey=",
        r"(?:AccountKey|SharedAccessKey)=(?P<secret>[A-Za-z0-9+/%]{20,}+=*+)",
    ),
    _shape("Azure shared access signature", "sig=", r"[?&;]sig=(?P<secret>[A-Za-z0-9%+/=]{20,}+)"),
    _shape("Azure client secret", "Q~", r"(?<![\w~.-])(?:[\w.-]{3}\dQ~)[\w~.-]{30,}+"),
    _shape("SendGrid", "SG.", rf"{_START}SG\.[\w-]{{16,}}+\.[\w-]{{16,}}+"),
    _shape("Twilio", "SK", rf"{_START}SK[0-9a-f]{{32}}(?![0-9A-Za-z])"),
    _shape("npm", "npm_", rf"{_START}npm_[A-Za-z0-9]{{30,}}+"),
    _shape("PyPI", "pypi-", rf"{_START}pypi-[\w-]{{40,}}+"),
    _shape("Hugging Face", "hf_ api_org_", rf"{_START}(?:hf|api_org)_[A-Za-z0-9]{{30,}}+"),
    _shape("DigitalOcean", "_v1_", rf"{_START}do[opr]_v1_[a-f0-9]{{40,}}+"),
    _shape("Shopify", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{30,}+"),
    _shape("Telegram", ":AA", r"(?<!\d)\d{8,10}:AA[\w-]{30,}+"),
    _shape(
        "Discord", ".",  # the part before, a public number, has one of five lengths
        rf"\.(?:{'|'.join(rf'(?<=(?<![A-Za-z0-9_-])[MNO][A-Za-z0-9_-]{{{most}}}.)' for most in range(23, 28))})"
        r"[\w-]{6}\.[\w-]{27,}+",
    ),
    _shape("Databricks", "dapi", rf"{_START}dapi[a-f0-9]{{32}}(?:-\d)?"),
    _shape("HashiCorp Vault", "hvs. hvb. hvr.", rf"{_START}hv[sbr]\.[\w-]{{20,}}+"),
    _shape("Terraform Cloud", ".atlasv1.", r"(?<![\w-])[\w-]{14}\.atlasv1\.[\w-]{40,}+"),
    _shape("Docker Hub", "dckr_", rf"{_START}dckr_[po]at_[\w-]{{20,}}+"),
    _shape("Grafana", "glsa_ glc_", rf"{_START}gl(?:sa|c)_[\w+/=]{{20,}}+"),
    _shape("Linear, Figma, Sentry", "lin_api_ figd_ sntrys_", rf"{_START}(?:lin_api|figd|sntrys)_[\w+/=-]{{20,}}+"),
    _shape("New Relic, Postman", "NRAK- PMAK-", rf"{_START}(?:NRAK|PMAK)-[A-Za-z0-9-]{{20,}}+"),
    _shape("Groq, xAI, Perplexity", "gsk_ xai- pplx-", rf"{_START}(?:gsk_|xai-|pplx-)[A-Za-z0-9]{{30,}}+"),
    _shape("Replicate, Netlify, Supabase", "r8_ nfp_ sbp_", rf"{_START}(?:r8|nfp|sbp)_[A-Za-z0-9]{{30,}}+"),
    _shape("Notion", "ntn_ secret_", rf"{_START}(?:ntn|secret)_[A-Za-z0-9]{{40,}}+"),
    _shape("Mailgun", "key-", rf"{_START}key-[0-9a-f]{{32}}(?![0-9A-Za-z])"),
    _shape("Doppler", "dp.pt.", rf"{_START}dp\.pt\.[A-Za-z0-9]{{30,}}+"),
    _shape("Square", "sq0", rf"{_START}sq0[a-z]{{3}}-[\w-]{{20,}}+"),
)  # fmt: skip

ADDRESS = _shape("password in an address", "://", r"(?<![^A-Za-z0-9+.-])://[^\s/:@]*+:(?P<secret>[^\s/@]{3,}+)(?=@)")

HINTS = tuple(dict.fromkeys(hint for shape in SHAPES for hint in shape.hints if hint != "."))

_SPACED = frozenset({"PRIVATE", "Private-Lines:"})
"""Hints of formats with white space inside."""

MIN_CHARS = 15
"""Shorter words have no credential; most texts have few longer ones, so only these are searched for hints."""

MIN_DISCORD_CHARS = 58
"""Length of the shortest token of Discord. It has no sign but two full stops."""

_STOPS = re.compile(r"\.[\w-]{6}\.[\w-]{27}")


def shapes_in(text: str) -> list[Shape]:
    """Return the shapes whose hints occur in *text*."""
    listed = [word for word in text.split() if word[MIN_CHARS - 1 :]]
    words = "\n".join(listed)
    found = {"."} if any(word[MIN_DISCORD_CHARS - 1 :] and _STOPS.search(word) for word in listed) else set[str]()
    found |= {hint for hint in HINTS if hint in words} | {hint for hint in _SPACED if hint in text}
    shapes = [shape for shape in SHAPES if not found.isdisjoint(shape.hints)] if found else []
    return [*shapes, ADDRESS] if "://" in text and "@" in text else shapes


def find_shapes(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield every text in the format of a credential: start of the match, start and end of the secret.

    They are in no order and may overlap.
    """
    for shape in shapes_in(text):
        part = "secret" if "secret" in shape.pattern.groupindex else 0
        for match in shape.pattern.finditer(text):
            if shape.counts is None or shape.counts(match[part]):
                start, end = match.span(part)
                yield match.start(), start + max(0, match[part].find(shape.begins)), end
