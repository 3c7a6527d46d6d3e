"""Secrets recognized by the name before them: ``password=...``, ``"token": "..."``, headers, addresses.

Prose and program code use the same names. A value counts as a secret only if it does not look like a word, a type, a
call or another variable.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from fireswarm.redaction.fold import fold

_MARKS = ("pass", "pwd", "secret", "token", "credential", "authorization", "key")
_KEYS = r"(?:api|access|secret|private|auth|account|encryption|signing|master|subscription)[_-]?"
_OWNERS = r"(?:(?<=db_)|(?<=sql_)|(?<=user_)|(?<=root_)|(?<=admin_)|(?<=mail_)|(?<=smtp_)|(?<=auth_))"
"""Owners in names: ``user_pass`` is a password; ``tests_pass`` and ``first_pass`` are not."""

_NAMES = (
    rf"passw(?:or)?ds?|passphrase|{_OWNERS}pass|(?<![a-z])pwd|secret(?:[_-]?(?:access[_-]?)?key)?|tokens?"
    rf"|{_KEYS}key|credentials?|authorization"
)
_NAME = re.compile(rf"(?i)(?P<name>{_NAMES}|key)s?+(?![A-Za-z])(?:[_-]?\d{{1,3}})?+")
_BEFORE_KEY = re.compile(rf"(?i)(?:{_KEYS}|[?&])\Z")
_NO_SECRET = re.compile(r"(?i)(?:page|next|continuation|cancel(?:lation)?|pagination|sync|csrf|max|num)[_-]?\Z")
_LONGEST_BEFORE = 16
_LONGEST_WORD = 80
_LONGEST_BEFORE_ELEMENT = 40
LEAST_LISTED_TOKEN = 12
"""Minimum length of a secret in a list of tokens; shorter words are tokens of a text."""

_SIGN = re.compile(r"\\*+[\"'`]?[ \t]*+(?P<is>=>|:=|[:=](?![:=]))[ \t]*+(?:\r?\n[ \t]++(?=\\*+[\"']))?+")
_OPENING = re.compile(r"\\*+[\"'`]?")
_REST = re.compile(
    r"(?:[ \t][^<>\n]{0,80})?+>[^<\n]{0,400}+"  # an element, or an entry of a property list
    r"|</?k?e?y?>?\s{0,20}+<?[a-z]{0,7}>?[^<\n]{0,400}+"
    r"|\\*+[\"']\s{1,8}v?a?l?u?e?\s{0,8}+(?:=\s{0,8}+(?:\\*+[\"'][^\"'\n]*+)?+)?+(?=\Z)"
    r"|\\*+[\"'`]?+\s*+(?:(?:=>|:=|[:=])\s*+(?:\[[^\]]{0,400}+|(?:-[ \t][^\n]*+(?:\r?\n[ \t]*+)?+){1,20}+"
    r"|\\*+[\"'`][^\"'`\n]*+|(?:(?i:bearer|basic|token)\b)?+\s*+[^\s\"',;]*+)?+)?+"
)
_ELEMENT = re.compile(
    r"(?:(?:[ \t][^<>\n]{0,80})?>|</key>(?:\s|\\[nrt]){0,20}<(?:string|integer)>)(?P<value>[^<>\n]{1,400})<\\*/"
)
_BEFORE_ELEMENT = re.compile(r"<[\w:.-]{0,39}\Z|<key>[\w.-]{0,30}\Z")
_NEXT_SETTING = re.compile(r"[ \t]{1,8}\w{1,40}=[^=\s]")
_CLOSING = re.compile(r"</[\w:.-]{0,39}\Z")
_ATTRIBUTE = re.compile(
    r"(?P<quote>\\*+[\"'])\s{1,16}value\s{0,8}=\s{0,8}(?P=quote)(?P<value>[^\"'<>\n\\]{1,400})(?P=quote)"
)
_ITEM = re.compile(
    r"(?:\s|\\[nrt])*+(?:(?P<open>\\*+[\"'`])"
    r"(?P<quoted>(?:(?!(?P=open))[^\n]){0,400}+)(?P=open)|(?P<bare>[^\s,\"'`\\<>(){}\[\]]{1,100}+))"
    r"(?:\s|\\[nrt])*+[,\]]"
)
_LINE_ITEM = re.compile(
    r"(?:\r?\n|(?:\\r)?\\n)[ \t]{0,40}+-[ \t]{1,8}+"
    r"(?:(?P<open>[\"'])(?P<quoted>[^\"'\n]{0,400}+)(?P=open)|(?P<bare>[^\s\"'\\]{1,400}+))[ \t]*+(?=[\r\n\\\"]|\Z)"
)
MOST_ITEMS = 1_000
"""Maximum number of checked items of one list."""

_COUNTED_BEFORE = re.compile(r"(?i)(?:total|input|output|prompt|completion|cached|used|eos|bos|pad)[_-]?\Z")
_QUOTED = re.compile(r"(?P<open>\\*+[\"'`])(?P<value>(?:(?!(?P=open))[^\n]){0,4096})(?P=open)")
_SCHEME = re.compile(r"(?i)(?:bearer|basic|token|apikey|digest)[ \t]++(?=[^\s\"',;]{8})")
_BARE = re.compile(r"(?P<value>[^\s,;&\"'`<>(){}\[\]|\\]++)(?P<next>[ \t]*+[^\s]?)")

_PASSWORD = re.compile(r"(?i)pass|pwd")
_WORDS = frozenset({
    "any", "auto", "bearer", "basic", "bool", "boolean", "bytes", "changeme", "dict", "digest", "empty", "enum",
    "false", "float", "function", "hidden", "integer", "invalid", "list", "missing", "must", "none", "null", "number",
    "object", "optional", "password", "plain", "prompt", "redacted", "required", "secret", "self", "string", "text",
    "token", "true", "undefined", "unknown", "unset", "void",
})  # fmt: skip
"""Words after a name that are not secrets: types, constants and words of descriptions."""

_ABOUT_SECRETS = re.compile(rf"(?i){_NAMES}|(?<![a-z])key|(?<![a-z])env(?![a-z])")
_PLACEHOLDER = re.compile(r"(?i)your|xxx|\*\*\*|\.\.\.|example|placeholder|change.?me|dummy")
_REFERENCE = re.compile(r"[$%{<@#]|\[redacted|https?:|(?:[A-Za-z_]\w*+\.)+[A-Za-z_]\w*+$|/[\w./-]*+$|\.{1,2}/")
"""A variable, a placeholder, an attribute or a path instead of a value."""

_LINE_START = re.compile(r"(?:^|\n|\\n|[\"'])[ \t-]*$", re.MULTILINE)
_SETTING = re.compile(r"(?:^|[\s\"'?&;{\[|])(?:export[ \t]+|--?)?[\w.-]{0,60}$")
"""Text that precedes the name in settings files, addresses and command lines, but not in calls."""

_HEADER = re.compile(r"(?i)authorization|x-[a-z-]{0,20}(?:key|token)")
_COUNTED = re.compile(r"(?i)tokens$|(?:page|next|continuation|cancel(?:lation)?|pagination|sync)[_-]?tokens?$|^key$")


def secret_field(name: str) -> bool:
    """Return True if every value of a document's field called *name* is secret."""
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", fold(name))
    return _FIELD.search(words) is not None and _COUNTED.search(words) is None


_FIELD = re.compile(rf"(?i)(?!pwd$)(?:^|[^a-z0-9])(?:{_NAMES})(?:[_-]?\d{{1,3}})?$")
"""A name of a secret as a field; ``pwd`` alone is a working folder."""


def find_assignments(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield every secret value after a name, in order: start of the name, start and end of the value."""
    after = listed = 0
    for name in find_names(text):
        if name.start() < after:
            continue
        sign = _SIGN.match(text, name.end())
        items = None if sign is None or name.start() < listed else _list_after(text, sign)
        if sign is None:
            spans = _text_after(text, name)
        elif items is not None:
            spans, listed = _items(text, name["name"], sign["is"], *items)
        else:
            spans = [span for span in [_value_after(text, name, sign)] if span is not None]
        for span in spans:
            after = span[1]
            yield name.start(), *span


def _text_after(text: str, name: re.Match[str]) -> list[tuple[int, int]]:
    """Return the position of the secret in an element or attribute called *name*."""
    pair = _ELEMENT.match(text, name.end())
    if pair is not None and not _ends_with(_BEFORE_ELEMENT, text, name.start(), _LONGEST_BEFORE_ELEMENT):
        pair = None
    pair = pair or _ATTRIBUTE.match(text, name.end())
    return [pair.span("value")] if pair is not None and _is_text_secret(name["name"], pair["value"]) else []


def _list_after(text: str, sign: re.Match[str]) -> tuple[bool, int] | None:
    """Return True for a list in brackets, False for a list of lines, and its position; None without a list."""
    if text.startswith("[", sign.end()):
        return True, sign.end() + 1
    line_ends = text.startswith(("\n", "\r", "\\n", "\\r"), sign.end())
    return (False, sign.end()) if sign["is"] == ":" and line_ends else None


def _items(text: str, name: str, sign: str, brackets: bool, at: int) -> tuple[list[tuple[int, int]], int]:
    """Return the positions of the secrets in a list, and the end of the list."""
    least = LEAST_LISTED_TOKEN if name.lower().startswith("token") else 1
    spans: list[tuple[int, int]] = []
    described = False
    for _ in range(MOST_ITEMS):
        item = _ITEM.match(text, at) if brackets else _LINE_ITEM.match(text, at)
        if item is None:
            break
        at = item.end()
        part = "bare" if item["quoted"] is None else "quoted"
        value = item[part]
        described |= value.lower() in _WORDS or _ABOUT_SECRETS.search(value) is not None
        if len(value) < least or _REFERENCE.match(value):
            continue
        if part == "quoted":  # words in a list of related words are not secrets
            secret = _is_quoted_secret(name, value) and (not described or _is_random(value))
        else:
            secret = _is_number(name, value) or (sign == ":" and _is_random(value))
        spans += [item.span(part)] if secret else []
        if item[0].endswith("]"):
            break
    return spans, at


def _is_text_secret(name: str, value: str) -> bool:
    """Return True if the text of an element is secret. The text of a password may be short."""
    short = _PASSWORD.search(name) is not None and 0 < len(value) < 4 and value.isalnum()
    return short or _is_quoted_secret(name, value.strip())


def _is_number(name: str, value: str) -> bool:
    """Return True for digits that are a password or long enough for a token, but not a count of tokens."""
    if not value.isdigit():
        return False
    return len(value) >= (6 if _PASSWORD.search(name) else 8) and name.lower() != "tokens"


def find_names(text: str) -> Iterator[re.Match[str]]:
    """Yield the names of secrets in *text*, in order."""
    lowered = text.lower()
    if len(lowered) != len(text):  # a letter whose lower case has two characters
        lowered = "".join(char.lower() if char.isascii() else char for char in text)
    places: list[int] = []
    for mark in _MARKS:
        at = lowered.find(mark)
        while at >= 0:
            places.append(at)
            at = lowered.find(mark, at + len(mark))
    for at in sorted(places):
        name = _NAME.match(text, at)
        if name is not None and name["name"].lower() == "key":
            before = _BEFORE_KEY.search(text, max(0, at - _LONGEST_BEFORE), at)
            name = None if before is None else _NAME.match(text, before.start()) or name
        if name is None:
            continue
        if not _ends_with(_NO_SECRET, text, name.start()):
            yield name


def _ends_with(pattern: re.Pattern[str], text: str, end: int, longest: int = _LONGEST_BEFORE) -> bool:
    return pattern.search(text, max(0, end - longest), end) is not None


def open_assignment(text: str, end: int) -> int:
    """Return the start of a name whose value may continue after *end*, or *end*."""
    judged: list[tuple[int, int]] = []
    for name in find_names(text[:end]):
        if judged and name.start() < judged[-1][1]:
            continue  # within a value that ends before *end*
        if _ends_with(_CLOSING, text, name.start(), _LONGEST_BEFORE_ELEMENT):
            continue
        value = _REST.match(text, name.end(), end)
        start, stop = _start_of_word(text, name.start()), name.end() if value is None else value.end()
        if stop == end:
            return next((at for at, after in judged if after > start), start)
        judged.append((start, stop))
    return end


def _start_of_word(text: str, at: int) -> int:
    """Return the start of the word that contains *at*: the text before a name decides about its value."""
    before = text[max(0, at - _LONGEST_WORD) : at]
    return at if not before or before[-1].isspace() else at - len(before.split()[-1])


def has_assignments(text: str) -> bool:
    """Return True if the JSON *text* may have a secret under or after a name; counts of tokens are ignored."""
    for name in find_names(text):
        sign = _SIGN.match(text, name.end())
        if sign is None:
            if text[name.end() : name.end() + 1] in ("<", ">", " ", "\\", '"', "'"):
                return True  # perhaps an element or an attribute
        elif not (name["name"].lower() == "tokens" and text[sign.end() : sign.end() + 1].isdigit()):
            return True
    return False


def _value_after(text: str, name: re.Match[str], sign: re.Match[str]) -> tuple[int, int] | None:
    """Return the position of the secret after a name, or None for a word, a variable or program code."""
    quoted = _QUOTED.match(text, sign.end())
    opening = _OPENING.match(text, sign.end())
    at = sign.end() if opening is None else opening.end()
    if _HEADER.search(text, max(0, name.start() - 24), name.end()) and (scheme := _SCHEME.match(text, at)):
        bare = _BARE.match(text, scheme.end())
        if bare is None or _REFERENCE.match(bare["value"]) or _is_variable(bare["value"]):
            return None
        return bare.span("value")
    if quoted is not None:
        return quoted.span("value") if _is_quoted_secret(name["name"], quoted["value"]) else None
    bare = _BARE.match(text, at)
    if bare is None or not _is_bare_secret(text, name, sign, bare):
        return None
    return bare.span("value")


def _is_quoted_secret(name: str, value: str) -> bool:
    if len(value) < 4 or value.lower() in _WORDS or _REFERENCE.match(value):
        return False
    if _is_random(value):
        return True
    password = _PASSWORD.search(name) is not None
    if _PLACEHOLDER.search(value) or _ABOUT_SECRETS.search(value):
        return False
    if " " in value:
        return password and not value[0].isupper()
    return password or (len(value) >= 16 and ("_" not in value or not value.isidentifier()))


def _is_bare_secret(text: str, name: re.Match[str], sign: re.Match[str], bare: re.Match[str]) -> bool:
    value = bare["value"].rstrip(".")
    follows = bare["next"].strip()
    if len(value) < 4 or value.lower() in _WORDS or _REFERENCE.match(value) or follows[:1] in ("(", "[", "{"):
        return False
    password = _PASSWORD.search(name["name"]) is not None
    if value.isdigit():
        return _is_number(name["name"], value) and not _ends_with(_COUNTED_BEFORE, text, name.start())
    tight = sign[0] == "="
    if _is_random(value):  # an identifier with a digit may be a variable
        return tight or password or sign["is"] == ":" or not value.isidentifier() or len(value) >= 16
    if tight and _ends_setting(text, name, bare):
        follows = ""
    if _is_variable(value) or _PLACEHOLDER.search(value) or follows not in ("", "&", ";", "\\", "'", '"'):
        return False
    if not tight:
        alone = _LINE_START.search(text, max(0, name.start() - 40), name.start()) is not None
        return password and sign[0].endswith(": ") and alone and follows in ("", "\\", '"') and value.islower()
    setting = _SETTING.search(text, max(0, name.start() - 70), name.start()) is not None
    return setting and (password or len(value) >= 12 or not value.isidentifier())


def _ends_setting(text: str, name: re.Match[str], bare: re.Match[str]) -> bool:
    """Return True if another setting follows, as in a connection string, or a command: ``PASSWORD=x psql``."""
    return name["name"].isupper() or _NEXT_SETTING.match(text, bare.end("value")) is not None


def _is_variable(value: str) -> bool:
    """Return True for a name such as ``api_key`` or ``MY_TOKEN_2``."""
    return value.isidentifier() and _ABOUT_SECRETS.search(value) is not None


def _is_random(value: str) -> bool:
    """Return True for at least six characters that are not a word: letters with digits, or with unusual signs."""
    if len(value) < 6 or " " in value or _is_variable(value):
        return False
    if len(value) < 20 and (_PLACEHOLDER.search(value) or "://" in value):
        return False
    letters = any(char.isalpha() for char in value)
    digits = any(char.isdigit() for char in value)
    return letters and (digits or any(char in "!@#$%^&*+~?/=" for char in value[1:]))
