"""Formats of credentials that the published rules lack or describe too narrowly.

Every pattern takes linear time; a repository test measures it.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from fireswarm.redaction.key_prefixes import LEAST_BODY, PREFIXES, PREFIXES_OF_IDS, UUID, looks_random


@dataclass(frozen=True, slots=True)
class Shape:
    """One format: a text without any of *hints* has no such credential, so the pattern is skipped.

    The group ``secret`` is the secret, or the whole match if there is no such group.
    """

    name: str
    hints: tuple[str, ...]
    source: str
    counts: Callable[[re.Match[str]], bool] | None = None
    """Decides if a match is a credential."""

    begins: str = ""
    """Text with which the credential begins within the match."""

    @property
    def pattern(self) -> re.Pattern[str]:
        """The expression, compiled when a text first has a hint, since most are never needed."""
        return _compile(self.source)


@cache
def _compile(source: str) -> re.Pattern[str]:
    return re.compile(source, re.ASCII)


def _shape(name: str, hints: str, source: str, counts: Callable[[re.Match[str]], bool] | None = None) -> Shape:
    return Shape(name, tuple(hints.split()), source, counts)


_START = r"(?<![A-Za-z0-9])"


def _random(match: re.Match[str]) -> bool:
    """Return False if the text after ``sk-`` is words with dashes, as in names of CSS classes."""
    text = match[0]
    return any(char.isdigit() for char in text) or "-" not in text.removeprefix("sk-")


def _is_random_key(match: re.Match[str]) -> bool:
    return looks_random(match["body"])


def _names_a_user(match: re.Match[str]) -> bool:
    """Return True if a text is what ``Basic`` announces: a name and a password, in base64."""
    try:
        pair = base64.b64decode(match["secret"] + "=" * (-len(match["secret"]) % 4), validate=True).decode()
    except ValueError:
        return False
    return ":" in pair and pair.isprintable()


def _beginning(prefix: str) -> str:
    """Return a pattern for *prefix* at the beginning of a word; a text is searched for a literal much faster."""
    literal = re.escape(prefix)
    return rf"{literal}(?<=(?<![\w-]){literal})"


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
        "JSON web token", (".eyJ",), r"(?<![\w-])[\w-]{11,}+\.eyJ[\w-]{8,}+(?:\.[\w-]{8,}+){1,2}",
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
    _shape("npm", "npm_", rf"{_START}npm_[A-Za-z0-9]{{30,}}+"),
    _shape("PyPI", "pypi-", rf"{_START}pypi-[\w-]{{40,}}+"),
    _shape("Hugging Face", "hf_ api_org_", rf"{_START}(?:hf|api_org)_[A-Za-z0-9]{{30,}}+"),
    _shape("DigitalOcean", "_v1_", rf"{_START}do[opr]_v1_[a-f0-9]{{40,}}+"),
    _shape("Shopify", "shpat_ shpca_ shppa_ shpss_", r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{30,}+"),
    _shape("Telegram", ":AA", r"(?<!\d)\d{8,10}:AA[\w-]{30,}+"),
    _shape(
        "Discord", ".",  # the part before is a public number in one of five lengths
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
    _shape(
        "Doppler", "dp.pt. dp.st. dp.ct. dp.sa. dp.scim. dp.audit.",
        rf"{_START}dp\.(?:[pcs]t|sa|scim|audit)\.(?:[\w-]{{2,30}}\.)?[A-Za-z0-9]{{30,}}+",
    ),
    *(
        _shape(prefix, prefix, rf"{_beginning(prefix)}(?P<body>[\w-]{{{LEAST_BODY},}}+)", _is_random_key)
        for prefix in PREFIXES.split()
    ),
    *(_shape(prefix, prefix, _beginning(prefix) + UUID) for prefix in PREFIXES_OF_IDS.split()),
    _shape(
        "keys after sk_, rk_ and pk_", "sk_ rk_ pk_",
        rf"{_START}[srp]k_(?:[a-z]{{2,8}}_)?(?P<body>[A-Za-z0-9]{{{LEAST_BODY},}}+)", _is_random_key,
    ),
    _shape("Azure services", "JQQJ99", r"[A-Za-z0-9]{52}JQQJ99[A-Za-z0-9]{26}"),
    _shape("DeepL", ":fx", rf"{_START}{UUID}:fx(?![\w-])"),
    _shape("Baidu", "bce-v3/", r"bce-v3/ALTAK-[A-Za-z0-9]{10,}+/[0-9a-f]{30,}+"),
    _shape("Tencent", "AKID", rf"{_START}AKID(?P<body>[A-Za-z0-9]{{32,}}+)", _is_random_key),
    _shape("Infisical", "st.", rf"{_START}st\.{UUID}\.[0-9a-f]{{32}}\.[0-9a-f]{{32}}"),
    _shape("Mapbox, Tinybird", "sk.eyJ p.eyJ", r"(?<![\w.-])(?:sk|p)\.eyJ[\w.-]{30,}+"),
    _shape(
        "basic authentication", "Basic basic",
        r"asic(?<=\b[Bb]asic)[ \t]{1,4}(?P<secret>[A-Za-z0-9+/]{8,}+=*+)", _names_a_user,
    ),
    _shape(
        "bearer token", "Bearer bearer",
        rf"earer(?<=\b[Bb]earer)[ \t]{{1,4}}(?P<secret>(?P<body>[\w.~+/-]{{{LEAST_BODY},}}+)=*+)", _is_random_key,
    ),
    _shape("Square", "sq0", rf"{_START}sq0[a-z]{{3}}-[\w-]{{20,}}+"),
)  # fmt: skip

ADDRESS = _shape("password in an address", "://", r"(?<![^A-Za-z0-9+.-])://[^\s/:@]*+:(?P<secret>[^\s/@]{3,}+)(?=@)")
