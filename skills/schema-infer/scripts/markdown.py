"""Read API documents in Markdown: calls in headings, lists, tables and code, and the parameters below them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token

from fireswarm import pipelines

from . import calls
from .reading import Reading, Source, unique_key
from .tables import COLUMNS, name_of, parameter_of

_BASE = re.compile(r"(?i)\bbase\s*url\b.*?(https?://[^\s`|>)]+)")
_KEY = re.compile(r"(?i)\b(api[ -]?key|bearer|oauth|basic auth|access token)\b")
_ANSWERS = re.compile(r"(?i)\b(responses?|returns?|returned|results?|errors?|output|webhook payload)\b")
_SENT = re.compile(r"(?i)\b(parameters?|attributes?|arguments?|fields?|body|request|headers|payload|query|form)\b")
_PLACES: tuple[tuple[str, pipelines.Place, str], ...] = (
    ("path", "path", ""),
    ("query", "query", ""),
    ("header", "header", ""),
    ("form", "body", "application/x-www-form-urlencoded"),
    ("multipart", "body", "multipart/form-data"),
    ("json", "body", "application/json"),
    ("body", "body", "application/json"),
)
"""Words of a heading that say where the parameters below it are sent."""

_DEFINED = re.compile(r"^`?([\w.$\[\]:-]+)`?$")
_LISTED = re.compile(
    r"^[`*]*+([A-Za-z_$][\w.$\[\]-]*+)[`*]*+\s*+(?:\(([^()]*+)\)\s*+)?[-:\u2013\u2014]\s*+(.*)$", re.DOTALL
)
NO_BODY = ("GET", "HEAD")


def read(files: Mapping[str, str], name: str) -> Reading:
    """Read all documents of the bundle; the result has no operations if they have another form."""
    reading = Reading("TYPE2", name)
    documents = [Source(file, text) for file, text in files.items() if pipelines.is_markdown(file)]
    for source in documents:
        for number, line in enumerate(source.lines, 1):
            if not reading.base_url and (base := _BASE.search(line)):
                reading.base_url = base[1].rstrip("/.,;")
                reading.know("base_url", source.evidence(number))
            if not reading.credentials and (key := _KEY.search(line)):
                reading.credentials.append(pipelines.identifier(key[1]))
                reading.know("credentials", source.evidence(number))
    taken: set[str] = set()
    drafts: dict[tuple[str, str], _Draft] = {}
    for source in documents:
        _Document(reading, source, taken, drafts).read()
    for draft in drafts.values():
        draft.finish(reading)
    _list_others(reading, documents)
    return reading


def _list_others(reading: Reading, documents: list[Source]) -> None:
    """List the calls of the texts that are no operations, such as one that is nested too deep."""
    known = {(each.method, each.path) for each in reading.operations.values()}
    known |= {(method, f"{reading.base_url}{path}") for method, path in known}
    for source in documents:
        for line, method, address in pipelines.count_calls(source.text):
            if (method, address) not in known and reading.operations:
                at, why = f"{source.name}:{line}", "the text has it where no call was expected"
                name = f"{method} {address}"
                reading.unread.append(pipelines.Unread(name=name, reason=why, position=at, part="operation"))
                known.add((method, address))


class _Draft:
    """An operation while its document is read."""

    def __init__(self, operation: pipelines.Operation, source: Source, line: int) -> None:
        self.operation = operation
        self.evidence = [source.evidence(line)]
        self.parameters: dict[tuple[str, str], tuple[pipelines.Parameter, Any]] = {}
        self.sent: dict[str, str] = {}
        self.media = ""

    def add(self, parameter: pipelines.Parameter, evidence: Any) -> None:
        """Add a parameter; of one that is named twice the first text counts, and a place that only the second has."""
        for key, (known, at) in list(self.parameters.items()):
            if known.name == parameter.name and (not known.place or not parameter.place or key[1] == parameter.place):
                if not known.place and parameter.place:
                    self.parameters[key] = (known.model_copy(update={"place": parameter.place}), at)
                return
        self.parameters[parameter.name, parameter.place] = (parameter, evidence)

    def take(self, call: calls.Call, source: Source) -> None:
        """Note the names that an example sends in each place."""
        self.media = self.media or call.media_type
        places: tuple[pipelines.Place, ...] = ("query", "body")
        for place in places:
            for name, value in call.names.get(place, {}).items():
                if not name or len(name) > MAX_NAME_CHARS:
                    continue
                self.sent.setdefault(name, place)
                if not any(known.name == name for known, _ in self.parameters.values()) and call.is_example is False:
                    kind = _kind_of(value)
                    made = pipelines.Parameter(
                        name=name, display_name=name, kind=kind, operations=(self.operation.key,)
                    )
                    self.add(made.model_copy(update={"place": place}), source.evidence(call.line))

    def finish(self, reading: Reading) -> None:
        """Add the operation and its parameters to the reading."""
        operation, inputs = self.operation, set[str]()
        for name in operation.placeholders:
            if not any(known.name == name for known, _ in self.parameters.values()):
                made = pipelines.Parameter(name=name, display_name=name, operations=(operation.key,), place="path")
                self.parameters[name, "path"] = (made, self.evidence[0])
        has_body = False
        finished: list[tuple[pipelines.Parameter, Any]] = []
        for known, evidence in self.parameters.values():
            is_path = known.name in operation.placeholders and known.place in ("", "path")
            place = "path" if is_path else known.place or self.sent.get(known.name, "")
            if not place and operation.method in NO_BODY:
                place = "query"
            update: dict[str, Any] = {"place": place, "required": known.required or is_path}
            given = known.name if known.name not in inputs else f"{known.name}_{place or 'other'}"
            inputs.add(given)
            update |= {"input": given if given != known.name else "", "explode": place == "query"}
            finished.append((known.model_copy(update=update), evidence))
            has_body |= place == "body"
        media = (self.media or "application/json") if has_body else ""
        reading.operation(operation.model_copy(update={"media_type": media}), *self.evidence)
        for parameter, evidence in finished:
            reading.parameter(parameter, evidence)


MAX_NAME_CHARS = 200


def _kind_of(value: Any) -> pipelines.Kind:
    kinds: tuple[tuple[type, pipelines.Kind], ...] = (
        (bool, "boolean"), (int, "integer"), (float, "number"), (list, "array"), (dict, "object"),
    )  # fmt: skip
    for each, kind in kinds:
        if isinstance(value, each):
            return kind
    return "string"


class _Document:
    """Reads one document, block after block."""

    def __init__(
        self, reading: Reading, source: Source, taken: set[str], drafts: dict[tuple[str, str], _Draft]
    ) -> None:
        self.reading, self.source, self.taken, self.drafts = reading, source, taken, drafts
        self.headings: list[tuple[int, str]] = []
        self.current: list[_Draft] = []
        self.fresh = False
        self.place: pipelines.Place = ""
        self.is_answer = self.is_sent = False

    def read(self) -> None:
        tokens = MarkdownIt("commonmark", {"maxNesting": 50}).enable("table").parse(_without_head(self.source.text))
        number = 0
        while number < len(tokens):
            token = tokens[number]
            line = (token.map[0] if token.map else 0) + 1
            match token.type:
                case "heading_open":
                    self._heading(int(token.tag[1:]), tokens[number + 1].content, line)
                    number += 2
                case "fence" | "code_block":
                    self._block(token, line)
                case "table_open":
                    end = next(at for at in range(number, len(tokens)) if tokens[at].type == "table_close")
                    self._table(tokens[number:end])
                    number = end
                case "inline":
                    inside = tokens[number - 1].type
                    self._paragraph(token.content, line, is_listed=inside == "paragraph_open" and token.level > 1)
                case _:
                    pass
            number += 1

    # ── calls ───────────────────────────────────────────────────────────────────────────────────────────

    def _heading(self, level: int, text: str, line: int) -> None:
        text = re.sub(r"\{#[^{}]*+\}$", "", text.strip()).rstrip()
        call = calls.call_in(text, line)
        if level == 1 and not self.reading.display_name and call is None:
            self.reading.display_name = text.removesuffix(" API").strip()
        while self.headings and self.headings[-1][0] >= level:
            self.headings.pop()
        if call is not None:
            self._call(call)
        else:
            self.headings.append((level, text))
            # A heading that says what is sent or answered belongs to the operation above it.
            if not self._note_meaning(text):
                self.current = []
        self.fresh = False

    def _note_meaning(self, text: str) -> bool:
        """Note what a heading or a text says of the parameters after it."""
        has_status = re.match(r"\d{3}\b", text) is not None
        self.is_answer = has_status or _ANSWERS.search(text) is not None
        self.is_sent = not self.is_answer and _SENT.search(text) is not None
        words = text.lower()
        self.place = ""
        found = next((each for each in _PLACES if each[0] in words), None) if self.is_sent else None
        if found is not None:
            self.place = found[1]
            for draft in self.current:
                draft.media = draft.media or found[2]
        return self.is_answer or self.is_sent

    def _call(self, call: calls.Call) -> None:
        """Begin an operation, or go on with one that has the same method and path."""
        address = call.address
        if address.startswith("http"):
            base = self.reading.base_url
            if not base:
                base = self.reading.base_url = "/".join(address.split("/")[:3])
                self.reading.know("base_url", self.source.evidence(call.line))
            address = address.removeprefix(base) or "/" if f"{address}/".startswith(f"{base}/") else address
        if (host := next(iter(call.names.get("host", {})), "")) and not self.reading.base_url:
            self.reading.base_url = f"https://{host}"
            self.reading.know("base_url", self.source.evidence(call.line))
        draft = self.drafts.get((call.method, address))
        if draft is None:
            draft = self._begin(call, address)
        if not self.fresh:
            self.current = []
        self.current.append(draft)
        self.fresh = True
        self.place, self.is_answer, self.is_sent = "", False, False
        draft.take(call, self.source)

    def _begin(self, call: calls.Call, address: str) -> _Draft:
        titles = [text for _, text in self.headings]
        title = call.title or (titles[-1] if len(titles) > 1 or (titles and call.title) else "")
        above = titles[-1] if call.title and titles else titles[-2] if len(titles) > 1 else ""
        first = next((part for part in address.split("/") if part and "{" not in part and ":" not in part), "api")
        resource = _resource(above or first)
        key = unique_key(resource, pipelines.identifier(title or f"{call.method} {address}"), self.taken)
        operation = pipelines.Operation(
            key=key, name=title, resource=resource, method=call.method, path=address,
            description=self._about(call.line),
        )  # fmt: skip
        draft = self.drafts[call.method, address] = _Draft(operation, self.source, call.line)
        return draft

    def _about(self, line: int) -> str:
        lines = self.source.lines[line : line + 4]
        return next((text.strip() for text in lines if text.strip() and text.strip()[0] not in "#|`~*{"), "")

    def _block(self, token: Token, line: int) -> None:
        first = line + 1 if token.type == "fence" else line
        for call in calls.calls_in_block(token.content, first):
            if call.is_example:
                self._example(call)
            else:
                self._call(call)
        self.fresh = False

    def _example(self, call: calls.Call) -> None:
        """Take base URL and places from a command line; one that fits no operation above it is an operation itself."""
        fitting = [
            (draft, base)
            for draft in (*self.current, *self.drafts.values())
            if draft.operation.method == call.method and (base := calls.base_of(call.address, draft.operation.path))
        ]
        if not fitting:
            if not self.current:
                self._call(call)
                return
            at, name = f"{self.source.name}:{call.line}", f"example {call.method} {call.address}"
            reason = "it fits no operation that the document names"
            self.reading.unread.append(pipelines.Unread(name=name, reason=reason, position=at, part="document"))
            return
        draft, base = fitting[0]
        if not self.reading.base_url:
            self.reading.base_url = base
            self.reading.know("base_url", self.source.evidence(call.line))
        draft.take(call, self.source)

    # ── parameters ──────────────────────────────────────────────────────────────────────────────────────

    def _table(self, tokens: list[Token]) -> None:
        rows = list(_rows(tokens))
        if not rows:
            return
        columns = [COLUMNS.get(cell.strip("*` ").lower(), "") for cell in rows[0][1]]
        is_parameters = "name" in columns and self.current and not self.is_answer
        for line, cells in rows if not is_parameters else rows[1:]:
            if not is_parameters:
                call = calls.call_in(" ".join(cells), line)
                if call is not None:
                    self.fresh = False
                    self._call(call)
                continue
            row = dict(zip(columns, cells, strict=False))
            if name := name_of(row.get("name", "")):
                self._add(name, row, line)
        self.fresh = False

    def _add(self, name: str, row: Mapping[str, str], line: int) -> None:
        for draft in self.current:
            operation = draft.operation
            parameter = parameter_of(name.lstrip(":") if name.startswith(":") else name, row, operation, self.place)
            if len(parameter.name) <= MAX_NAME_CHARS:
                draft.add(parameter, self.source.evidence(line))

    def _paragraph(self, text: str, line: int, *, is_listed: bool) -> None:
        found = False
        for number, each in enumerate(text.split("\n")):
            call = calls.call_in(each, line + number)
            if call is not None and (is_listed or pipelines.is_call(each)):
                self.fresh = self.fresh and is_listed
                self._call(call)
                found = True
        if found:
            return
        lines = text.split("\n")
        if any(each.startswith(": ") for each in lines[1:]):
            self._definitions(lines, line)
        elif is_listed and self.is_sent and self.current and (item := _LISTED.match(text)):
            told = item[2] or ""
            row = {"kind": told.split(",")[0], "required": told, "about": item[3]}
            self._add(item[1], row, line)
        elif not is_listed:
            self._note_meaning_of_text(text)
            self.fresh = False

    def _note_meaning_of_text(self, text: str) -> None:
        """A text that introduces a table says what the table has; other texts change nothing."""
        if text.rstrip("*_ ").endswith(":") and len(text) < MAX_NAME_CHARS:
            before = (self.place, self.is_answer, self.is_sent)
            if not self._note_meaning(text):
                self.place, self.is_answer, self.is_sent = before

    def _definitions(self, lines: list[str], line: int) -> None:
        """Read terms, each with its definition in a line that begins with a colon."""
        if self.is_answer or not self.is_sent:
            return
        for number, (term, told) in enumerate(zip(lines, lines[1:], strict=False)):
            if told.startswith(": ") and (name := _DEFINED.match(term.strip())):
                told = re.sub(r"\{\{[^{}]*\}\}", lambda found: "required " * ("required" in found[0]), told[2:])
                kind = re.sub(r"^(?:required\s*+)++", "", told).split(".")[0].split(" ")[0].lower()
                self._add(name[1], {"kind": kind, "required": told[:8], "about": told}, line + number)


def _resource(heading: str) -> str:
    word = pipelines.identifier(heading)
    if word.endswith("ves"):
        return f"{word[:-3]}f"
    return word.removesuffix("s") if len(word) > 3 and not word.endswith("ss") else word


def _without_head(text: str) -> str:
    """Blank the block of metadata at the beginning; lines keep their numbers."""
    lines = text.split("\n")
    if lines[0].strip() != "---":
        return text
    end = next((number for number, line in enumerate(lines[1:], 1) if line.strip() == "---"), 0)
    return "\n".join([""] * (end + 1) + lines[end + 1 :]) if end else text


def _rows(tokens: list[Token]) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the cells of each row of a table."""
    line, cells = 0, list[str]()
    for token in tokens:
        if token.type == "tr_open":
            line, cells = (token.map[0] if token.map else line) + 1, []
        elif token.type == "inline":
            cells.append(token.content)
        elif token.type == "tr_close":
            yield line, cells
