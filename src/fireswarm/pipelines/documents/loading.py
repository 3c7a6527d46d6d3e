"""Load YAML and JSON of strangers, with the position of each key.

Depth, size and aliases are limited, tags make no objects, and keys that stand twice are noted. Only what JSON knows
becomes a value: ``yes`` and dates are texts, as OpenAPI asks for (YAML 1.2, JSON schema).
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import yaml

from fireswarm.errors import InvalidInput

MAX_DEPTH = 200
"""Published documents have up to 60 levels."""

MAX_NODES = 5_000_000
"""Values of a document, each alias with all that it stands for. The API of GitHub has 1.2 million."""

_TOKEN = re.compile(r'"(?:[^"\\\n]|\\.)*+"|[{}\[\],:]|[^\s{}\[\],:"]++')
_INTEGER = re.compile(r"[-+]?[0-9]++")
_FLOAT = re.compile(r"[-+]?(?:[0-9]++\.[0-9]*+|\.[0-9]++|[0-9]++)(?:[eE][-+]?[0-9]++)?")
_WORDS: dict[str, Any] = {
    **dict.fromkeys(("null", "Null", "NULL", "~", ""), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_MERGE = "<<"


class Spot(NamedTuple):
    """A position: a line from 1, and a column from 0."""

    line: int
    column: int


@dataclass(slots=True)
class LoadedDocument:
    """A document, the positions of the keys of its objects and entries of its lists, and keys that stand twice."""

    value: Any = None
    spots: dict[int, dict[Any, Spot]] = field(default_factory=dict[int, dict[Any, Spot]])
    twice: list[tuple[str, Spot]] = field(default_factory=list[tuple[str, Spot]])

    def spot(self, container: Any, key: Any) -> Spot | None:
        """Return the position of a key of an object, or of an entry of a list, of this document."""
        return self.spots.get(id(container), {}).get(key)


@dataclass(slots=True)
class _Open:
    """An object or a list whose end was not read yet."""

    value: Any
    key: str | None = None
    spot: Spot | None = None
    anchor: str | None = None
    size: int = 1


class _Builder:
    """Builds the value without recursion; raises InvalidInput above a limit."""

    def __init__(self, text: str) -> None:
        self.document = LoadedDocument()
        self._starts = [0]
        for line in text.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._open: list[_Open] = []
        self._anchors: dict[str, tuple[Any, int]] = {}
        self._has_started = False

    def spot(self, offset: int) -> Spot:
        """Return the position of a character."""
        line = bisect_right(self._starts, offset)
        return Spot(line, offset - self._starts[line - 1])

    def start(self, offset: int) -> None:
        """Begin a document."""
        if self._has_started:
            raise InvalidInput(f"line {self.spot(offset).line}: a second document begins: split the file")
        self._has_started = True

    def begin(self, value: Any, offset: int, anchor: str | None = None) -> None:
        """Begin an object or a list."""
        if len(self._open) >= MAX_DEPTH:
            raise InvalidInput(f"line {self.spot(offset).line}: more than {MAX_DEPTH} levels")
        self._place(offset)
        self._open.append(_Open(value, anchor=anchor))
        self.document.spots[id(value)] = {}

    def end(self) -> None:
        """End the object or list that was begun last."""
        ended = self._open.pop()
        if isinstance(ended.value, dict) and isinstance(ended.value.get(_MERGE), (dict, list)):
            self._merge(ended.value)
        if ended.anchor:
            self._anchors[ended.anchor] = (ended.value, ended.size)
        self._put(ended.value, ended.size)

    def scalar(self, value: Any, offset: int, anchor: str | None = None) -> None:
        """Add a value that has no parts; in an object, in turn a key and its value."""
        top = self._open[-1] if self._open else None
        if top is not None and isinstance(top.value, dict) and top.key is None:
            key = value if isinstance(value, str) else json.dumps(value)
            top.key, top.spot = key, self.spot(offset)
            if key in top.value:
                self.document.twice.append((key, top.spot))
            return
        self._place(offset)
        if anchor:
            self._anchors[anchor] = (value, 1)
        self._put(value, 1)

    def alias(self, name: str, offset: int) -> None:
        """Add what an anchor stands for."""
        if name not in self._anchors:
            raise InvalidInput(f"line {self.spot(offset).line}: *{name} stands for nothing, or for what it is part of")
        value, size = self._anchors[name]
        self._place(offset)
        self._put(value, size)

    def _place(self, offset: int) -> None:
        top = self._open[-1] if self._open else None
        if top is not None and isinstance(top.value, dict) and top.key is None:
            raise InvalidInput(f"line {self.spot(offset).line}: a key is no text")
        if top is not None and isinstance(top.value, list):
            top.spot = self.spot(offset)

    def _put(self, value: Any, size: int) -> None:
        if not self._open:
            self.document.value = value
            return
        top = self._open[-1]
        top.size += size
        if top.size > MAX_NODES:
            raise InvalidInput(f"more than {MAX_NODES:,} values")
        spots = self.document.spots[id(top.value)]
        key: Any = len(top.value) if isinstance(top.value, list) else top.key
        if isinstance(top.value, list):
            top.value.append(value)
        else:
            top.value[key] = value
        if top.spot is not None:
            spots[key] = top.spot
        top.key = None

    def _merge(self, value: dict[str, Any]) -> None:
        merged = value.pop(_MERGE)
        spots = self.document.spots[id(value)]
        for each in merged if isinstance(merged, list) else [merged]:
            if isinstance(each, dict):
                inner = self.document.spots.get(id(each), {})
                for key in each.keys() - value.keys():
                    value[key] = each[key]
                    if key in inner:
                        spots[key] = inner[key]


def load_document(text: str) -> LoadedDocument:
    """Return a document in YAML or JSON. Raises InvalidInput with the line for another text, or above a limit."""
    if text.lstrip()[:1] in ("{", "["):
        builder = _Builder(text)
        try:
            _read_json(text, builder)
            return builder.document
        except ValueError:
            pass  # objects of YAML begin in the same way
    builder = _Builder(text)
    try:
        events: Any = yaml.parse(text, Loader=_LOADER)
        for event in events:
            _take_event(event, builder)
    except yaml.YAMLError as error:
        raise InvalidInput(f"not valid YAML or JSON: {' '.join(str(error).split())}") from error
    return builder.document


def _take_event(event: Any, builder: _Builder) -> None:
    offset: int = event.start_mark.index
    match event:
        case yaml.DocumentStartEvent():
            builder.start(offset)
        case yaml.MappingStartEvent():
            builder.begin({}, offset, event.anchor)
        case yaml.SequenceStartEvent():
            builder.begin([], offset, event.anchor)
        case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
            builder.end()
        case yaml.AliasEvent():
            builder.alias(str(event.anchor), offset)
        case yaml.ScalarEvent():
            is_plain = event.implicit[0] and event.style in (None, "")
            builder.scalar(_plain(event.value) if is_plain else event.value, offset, event.anchor)
        case _:
            pass


def _plain(text: str) -> Any:
    if text in _WORDS:
        return _WORDS[text]
    try:
        if _INTEGER.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            number = float(text)
            return number if abs(number) < float("inf") else text
    except ValueError:  # more digits than a number may have
        pass
    return text


def _tokens(text: str) -> Iterator[tuple[str, int]]:
    end = 0
    for token in _TOKEN.finditer(text):
        if text[end : token.start()].strip():
            raise ValueError(f"unexpected text at {end}")
        end = token.end()
        yield token[0], token.start()
    if text[end:].strip():
        raise ValueError(f"unexpected text at {end}")


def _read_json(text: str, builder: _Builder) -> None:
    """Feed *builder* with JSON. Raises ValueError for other texts."""
    closing: list[str] = []
    # What may stand here: a value, a key, the end of an object or list, a comma, a colon.
    wanted = "value"
    for token, offset in _tokens(text):
        if token in ("{", "["):
            _expect("value" in wanted, offset)
            builder.begin({} if token == "{" else [], offset)
            closing.append("}" if token == "{" else "]")
            wanted = "key or end" if token == "{" else "value or end"
        elif token in ("}", "]"):
            _expect("end" in wanted and closing and closing.pop() == token, offset)
            builder.end()
            wanted = "comma or end" if closing else ""
        elif token == ",":
            _expect("comma" in wanted, offset)
            wanted = "key" if closing[-1] == "}" else "value"
        elif token == ":":
            _expect(wanted == "colon", offset)
            wanted = "value"
        elif "key" in wanted:
            _expect(token.startswith('"'), offset)
            builder.scalar(_decode(token), offset)
            wanted = "colon"
        else:
            _expect("value" in wanted, offset)
            builder.scalar(_decode(token), offset)
            wanted = "comma or end" if closing else ""
    _expect(not closing and wanted == "", len(text))


def _expect(is_expected: object, offset: int) -> None:
    if not is_expected:
        raise ValueError(f"not JSON at {offset}")


def _refuse(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _decode(token: str) -> Any:
    value = json.loads(token, parse_constant=_refuse)
    if isinstance(value, str) and "\\u" in token:
        return value.encode("utf-8", "replace").decode("utf-8")  # half of a character cannot be written
    if isinstance(value, float) and abs(value) == float("inf"):
        return token
    return value
