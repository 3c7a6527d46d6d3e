"""Convert a copy of gitleaks' published rules into the package's data file.

    python tools/secret_rules.py gitleaks.toml LICENSE VERSION COMMIT > src/fireswarm/redaction/rules.json

The rules that are left out, and those that are rewritten, are named here with the reason.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

LEFT_OUT = {
    "no format of a credential: any word with enough entropy after a common name, so prose, hashes and paths": (
        "generic-api-key", "hashicorp-tf-password",
    ),
    "public identifiers, no secrets; their values look like any other word or hash": (
        "adobe-client-id", "asana-client-id", "bitbucket-client-id", "discord-client-id", "linkedin-client-id",
        "looker-client-id", "messagebird-client-id", "new-relic-user-api-id", "plaid-client-id", "sendbird-access-id",
        "sumologic-access-id",
    ),
    "takes more than linear time; fireswarm.redaction has a pattern of its own for it": (
        "curl-auth-header", "curl-auth-user", "private-key",
    ),
    "takes more than linear time and redacts whole manifests; names such as password are redacted in them": (
        "kubernetes-secret-yaml",
    ),
    "the name of a file, not a text": ("pkcs12-file",),
}  # fmt: skip

REWRITTEN: dict[str, tuple[tuple[str, Any], ...]] = {
    "authress-service-client-access-key": (("keywords", [".acc_", ".acc-"]),),
    "airtable-personnal-access-token": (("keywords", []), (r"\b(pat", r"(pat(?<=\bpat)")),
    "cloudflare-origin-ca-key": (("keywords", ["v1.0-"]),),
    "twilio-api-key": (("keywords", []),),  # "sk" is in every task
    "intra42-client-secret": (("keywords", ["s-s4t2ud-", "s-s4t2af-"]),),
    "jwt": (("keywords", [".ey"]),),
    "lob-api-key": (("keywords", ["lob"]),),
    "lob-pub-api-key": (("keywords", ["lob"]),),
    "new-relic-browser-api-token": (("keywords", ["newrelic", "new-relic", "new_relic"]),),
    "new-relic-insert-key": (("keywords", ["newrelic", "new-relic", "new_relic"]),),
    "new-relic-user-api-key": (("keywords", ["newrelic", "new-relic", "new_relic"]),),
    "nytimes-access-token": (("keywords", ["nytimes", "new-york-times,", "newyorktimes"]),),
    "gocardless-api-token": (("keywords", ["gocardless"]),),
    "typeform-api-token": (("keywords", ["typeform"]),),
    "mailchimp-api-key": (("MailchimpSDK.initialize", r"MailchimpSDK\.initialize"),),
    "slack-config-access-token": (("xoxe.xox", r"xoxe\.xox"),),
    # the rest of the token is a secret too
    "aws-amazon-bedrock-api-key-short-lived": (("MuY29t", r"MuY29t[\w+/=%-]*"),),
    # what precedes and follows it stays
    "azure-ad-client-secret": (
        (r"""(?:^|[\\'"\x60\s>=:(,)])""", r"(?<![\w~.-])"), (r"""(?:$|[\\'"\x60\s<),])""", r"(?![\w~.-])"),
    ),
    "gitlab-session-cookie": (("[0-9a-z]{32}", "([0-9a-z]{32})"),),
    "slack-webhook-url": (
        ("(?:https?://)?hooks.slack.com", r"hooks\.slack\.com"), ("[A-Za-z0-9+/]{43,56}", "([A-Za-z0-9+/]{43,56})"),
    ),
    "sidekiq-sensitive-url": (
        ("gems.contribsys.com|enterprise.contribsys.com", r"gems\.contribsys\.com|enterprise\.contribsys\.com"),
        (r"(?:[\/|\#|\?|:]|$)", r"(?![\w.-])"),
    ),
    # the whole address
    "microsoft-teams-webhook": (("([a-z0-9]{4}-)", "(?:[a-z0-9]{4}-)"),),
    # linear time
    "nuget-config-password": ((r"(.{8,})\"\s*/>", r'([^"\n]{8,})"'),),
    # lines after the token stay
    "jwt-base64": ((r"\r\n]", "]"),),
    # no hashes, and no attributes of an object called s
    "sourcegraph-access-token": (("|[a-fA-F0-9]{40})", ")"), ("keywords", ["sgp_"])),
    # one pattern for each of two formats, see ADDED
    "vault-service-token": ((r"|s\.(?i:[a-z0-9]{24})", ""), ("keywords", ["hvs."])),
    "atlassian-api-token": ((r"""|\b(ATATT3[A-Za-z0-9_\-=]{186})(?:[\x60'"\s;]|\\[nr]|$)""", ""),),
}  # fmt: skip
"""Texts that are replaced in the pattern of a rule, or its keywords."""

ADDED = (
    {
        "id": "atlassian-api-token-2",
        "regex": r"""\b(ATATT3[A-Za-z0-9_\-=]{186})(?:[\x60'"\s;]|\\[nr]|$)""",
        "keywords": ["atatt3"],
    },
    {
        "id": "vault-service-token-2",  # with a digit: "s." also begins a method of an object called s
        "regex": r"""(s\.(?<=\bs\.)(?=[A-Za-z]{0,23}\d)(?i:[a-z0-9]{24}))(?:[\x60'"\s;]|\\[nr]|$)""",
        "keywords": [],
    },
)
SPACED = frozenset({"facebook-access-token", "freemius-secret-key", "nuget-config-password"})
"""Rules whose keyword or pattern has white space around or in it, so a single word does not tell."""

END = r"""(?:[\x60'"\s;]|\\[nr]|$)"""
SIGN = r"""(?:[ \t\w.-]{0,20})[\s'"]{0,3}(?:=|>|:{1,3}=|\|\||:|=>|\?=|,)[\x60'"\s=]{0,5}"""
NAMED = re.compile(
    r"(?:\(\?i\)\[\\w\.-\]\{0,50\}\?|\[\\w\.-\]\{0,50\}\?\(\?i:\[\\w\.-\]\{0,50\}\?)(?P<name>.*)"
    r"\(\?:\[ \\t\\w\.-\]\{0,20\}\)\[\\s'\"\]\{0,3\}\)?" + re.escape(SIGN.partition("{0,3}")[2]) + "(?P<value>.*)"
)
PLAIN = re.compile(r"\[[^\]]*\](?:\{[\d,]+\})?(?:\[[^\]]*\]\{\d+\})?")
UUID = re.compile(r"(?:\[0-9a-fA-F\]|\[0-9a-f\]|\[0-9A-F\]|-|\{\d+\})+")

SOURCE = "https://github.com/gitleaks/gitleaks, config/gitleaks.toml, version {version}, commit {commit}"
CHANGES = (
    "The patterns are written for Python's re. The secret is the group 'secret', or the whole match.",
    "A token ends where no letter, digit or one of '_+/=-' follows. A token of fixed length takes all that follows.",
    "'named' is the name of a provider and 'value' the value after it; 'plain' marks a value that looks like a hash.",
    "A rule without hints is tried on every text.",
    "'any_case' marks hints in lower case, 'spaced' those that need not be in one word with the secret.",
)


def main() -> None:
    """Print the data file."""
    source, license_file, version, commit = sys.argv[1:]
    rules: list[dict[str, Any]] = tomllib.loads(Path(source).read_text(encoding="utf-8"))["rules"]
    omitted = {name for names in LEFT_OUT.values() for name in names}
    unknown = (omitted | REWRITTEN.keys()) - {rule["id"] for rule in rules}
    if unknown:
        raise SystemExit(f"not in the published rules: {', '.join(sorted(unknown))}")
    used = [rule for rule in rules if rule["id"] not in omitted]
    head = {
        "about": "Formats of credentials. Generated by tools/secret_rules.py from the source; change the tool instead.",
        "source": SOURCE.format(version=version, commit=commit),
        "version": version,
        "license": Path(license_file).read_text(encoding="utf-8").strip().splitlines(),
        "changes": [*CHANGES, f"Further changes, see the tool: {', '.join(sorted(REWRITTEN))}."],
        "used": len(used),
        "left_out": {why: list(names) for why, names in LEFT_OUT.items()},
    }
    lines = [json.dumps(dict(_entry(rule))) for rule in (*used, *ADDED)]
    print(json.dumps(head, indent=2).removesuffix("\n}") + ',\n  "rules": [\n    ' + ",\n    ".join(lines) + "\n  ]\n}")


def _entry(rule: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a rule of the data file."""
    pattern, keywords = rule["regex"], rule["keywords"]
    for old, new in REWRITTEN.get(rule["id"], ()):
        if old == "keywords":
            keywords = new
        elif old not in pattern:
            raise SystemExit(f"{rule['id']}: the pattern has changed; it has no {old}")
        else:
            pattern = pattern.replace(old, new)
    yield "id", rule["id"]
    named = NAMED.fullmatch(pattern)
    if named is None:
        hints, any_case = _hints(pattern, keywords)
        yield "hints", hints
        yield from (
            (mark, True) for mark, is_set in (("any_case", any_case), ("spaced", rule["id"] in SPACED)) if is_set
        )
        yield "pattern", _python(pattern)
        return
    inner = named["value"].removesuffix(END)[1:-1]
    if named["value"] != f"({inner}){END}":
        raise SystemExit(f"{rule['id']}: no single value: {named['value']}")
    yield "hints", keywords
    yield "named", _groups(_scoped(named["name"]), keep=False)
    yield "value", _groups(_scoped(inner), keep=False)
    if PLAIN.fullmatch(inner) or UUID.fullmatch(inner) or rule["id"] == "sonar-api-token":
        yield "plain", True


def _hints(pattern: str, keywords: list[str]) -> tuple[list[str], bool]:
    """Return the keywords as the pattern spells them, or in lower case and True."""
    if pattern.startswith("(?i)"):
        return keywords, True
    if not keywords:
        return [], False
    plain = pattern.replace("\\", "")
    places = [plain.lower().find(word) for word in keywords]
    if min(places) < 0:
        return keywords, True
    return [plain[at : at + len(word)] for at, word in zip(places, keywords, strict=True)], False


def _python(pattern: str) -> str:
    """Return the pattern for Python, with one group at most."""
    pattern = pattern.replace("[[:alnum:]]", "[A-Za-z0-9]").replace(r"(?:[^\w-]|\z)", r"(?![\w-])")
    pattern = pattern.replace(r"(?:[^a-zA-Z0-9+/]|\z)", "(?![a-zA-Z0-9+/])")
    pattern = pattern.replace(END.replace("|$)", r"|$|\b)"), END)
    if pattern.endswith(END):
        pattern = pattern.removesuffix(END) + r"(?![\w+/=-])"
    else:
        pattern = re.sub(r"\{(\d+)\}$", r"{\1,}", pattern)
    return _groups(_scoped(pattern), keep=True)


def _scoped(pattern: str) -> str:
    """Return the pattern with each flag that counts from its place on as a group around the rest."""
    while (at := pattern.find("(?i)")) >= 0:
        depth, end, i = 0, len(pattern), at + 4
        while i < len(pattern):
            if pattern[i] == "\\":
                i += 2
                continue
            if pattern[i] == "[":
                i = pattern.index("]", i + 2)
            depth += {"(": 1, ")": -1}.get(pattern[i], 0)
            if depth < 0:
                end = i
                break
            i += 1
        pattern = f"{pattern[:at]}(?i:{pattern[at + 4 : end]}){pattern[end:]}"
    return pattern


def _groups(pattern: str, *, keep: bool) -> str:
    """Return the pattern without capturing groups; with *keep* the first one is the secret."""
    made, i = "", 0
    while i < len(pattern):
        if pattern[i] == "\\":
            made += pattern[i : i + 2]
            i += 2
        elif pattern[i] == "[":
            end = pattern.index("]", i + 2) + 1
            made += pattern[i:end]
            i = end
        elif pattern[i] == "(" and (pattern[i + 1] != "?" or pattern.startswith("(?P<", i)):
            made += "(?P<secret>" if keep and pattern[i + 1] != "?" else "(?:"
            keep = keep and pattern[i + 1] == "?"
            i = pattern.index(">", i) + 1 if pattern.startswith("(?P<", i) else i + 1
        else:
            made += pattern[i]
            i += 1
    return made


if __name__ == "__main__":
    main()
