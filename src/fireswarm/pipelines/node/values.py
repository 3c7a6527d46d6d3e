"""Values of a template: how each is made of parameters, fields of the credential, and earlier answers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue

from fireswarm.contracts.base import Contract
from fireswarm.pipelines.node import shaping
from fireswarm.pipelines.node.shaping import MISSING

EACH = "$each"
"""Name of the entry of a list from which a value is made."""

PAGES = "$pages"
"""Name below which the pages of a request are, by its number."""

PAGE = "$page"
"""Name of the page before a further one."""

type Presence = Literal["given", "filled", "constant"]


class Constant(Contract):
    """The same in all recordings."""

    kind: Literal["constant"] = "constant"
    constant: JsonValue = None

    def of(self, scope: Mapping[str, Any]) -> Any:
        """Return the constant."""
        return self.constant

    def uses(self) -> Iterator[str]:
        """Yield nothing."""
        return iter(())


class Taken(Contract):
    """What is at a dotted name, after ``steps``, which are names of `shaping.STEPS`.

    It is sent where it is given. With ``presence`` filled, it is not sent where it is empty; with ``constant``, the
    constant takes its place there.
    """

    kind: Literal["taken"] = "taken"
    name: str
    steps: tuple[str, ...] = ()
    presence: Presence = "given"
    constant: JsonValue = None

    def of(self, scope: Mapping[str, Any]) -> Any:
        """Return what is taken from *scope*, or MISSING. Raises what a step raises."""
        found = shaping.take(scope, self.name)
        if self.presence != "given":
            found = shaping.nonempty(found)
        for step in self.steps:
            found = shaping.through(step, found)
        return shaping.otherwise(found, self.constant) if self.presence == "constant" else found

    def uses(self) -> Iterator[str]:
        """Yield the name."""
        yield self.name


class Text(Contract):
    """A text that has {} in the place of each name.

    It is not sent if one is missing; with ``presence`` filled, if one is missing or empty.
    """

    kind: Literal["text"] = "text"
    pattern: str
    names: tuple[str, ...]
    presence: Literal["given", "filled"] = "given"

    def of(self, scope: Mapping[str, Any]) -> Any:
        """Return the text, or MISSING."""
        found = [shaping.take(scope, name) for name in self.names]
        if self.presence == "filled":
            found = [shaping.nonempty(each) for each in found]
        return shaping.within(self.pattern, *found)

    def uses(self) -> Iterator[str]:
        """Yield the names in the text."""
        yield from self.names


class ObjectValue(Contract):
    """An object; what is missing is left out, and with ``is_optional`` the object too if nothing is left."""

    kind: Literal["fields"] = "fields"
    fields: dict[str, Value]
    is_optional: bool = False

    def of(self, scope: Mapping[str, Any]) -> Any:
        """Return the object, or MISSING."""
        made = {name: each.of(scope) for name, each in self.fields.items()}
        return shaping.optional(made) if self.is_optional else shaping.keep(made)

    def uses(self) -> Iterator[str]:
        """Yield the names of all fields."""
        for each in self.fields.values():
            yield from each.uses()


class Listed(Contract):
    """A list of so many entries. It is missing if one is; with ``is_optional`` it has the entries that are not."""

    kind: Literal["listed"] = "listed"
    entries: tuple[Value, ...]
    is_optional: bool = False

    def of(self, scope: Mapping[str, Any]) -> Any:
        """Return the list, or MISSING."""
        entries = [each.of(scope) for each in self.entries]
        return shaping.list_present(*entries) if self.is_optional else shaping.list_all(*entries)

    def uses(self) -> Iterator[str]:
        """Yield the names of all entries."""
        for each in self.entries:
            yield from each.uses()


class Each(Contract):
    """A list with an entry for each one of ``source``; with ``key`` an object."""

    kind: Literal["each"] = "each"
    source: Taken
    key: Value | None = None
    entry: Value

    def of(self, scope: Mapping[str, Any]) -> Any:
        """Return the list or the object, or MISSING."""
        source, key, entry = self.source.of(scope), self.key, self.entry
        if key is None:
            return shaping.each(source, lambda one: entry.of({**scope, EACH: one}))
        return shaping.map_keyed(source, lambda one: (key.of({**scope, EACH: one}), entry.of({**scope, EACH: one})))

    def uses(self) -> Iterator[str]:
        """Yield the name of the source, and those in an entry."""
        yield self.source.name
        yield from self.entry.uses()
        if self.key is not None:
            yield from self.key.uses()


class FromPages(Contract):
    """The items at a dotted name of all pages of a request."""

    kind: Literal["gathered"] = "gathered"
    request: str
    name: str = ""

    def of(self, scope: Mapping[str, Any]) -> Any:
        """Return the items as a list."""
        return shaping.gather(shaping.take(scope, f"{PAGES}.{self.request}"), self.name)

    def uses(self) -> Iterator[str]:
        """Yield the name of the pages."""
        yield f"{PAGES}.{self.request}"


class Address(Contract):
    """A path with dotted names in braces, or a whole address.

    Values are encoded as a whole; those of ``plain`` keep the characters that may stand in a part of an address.
    """

    kind: Literal["address"] = "address"
    pattern: str
    plain: tuple[str, ...] = ()

    def of(self, scope: Mapping[str, Any]) -> Any:
        """Return the address as a text. What stands at its beginning is an address itself."""
        made = self.pattern
        for number, name in enumerate(self.uses()):
            encode = shaping.plain if name in self.plain else shaping.quote_part
            is_address = number == 0 and self.pattern.startswith("{")
            found = shaping.take(scope, name)
            made = made.replace(f"{{{name}}}", shaping.text(found) if is_address else encode(found), 1)
        return made

    def uses(self) -> Iterator[str]:
        """Yield the names in braces."""
        yield from (piece.partition("}")[0] for piece in self.pattern.split("{")[1:])


class Either(Contract):
    """What is sent if a parameter is filled, and if it is empty or missing."""

    kind: Literal["either"] = "either"
    name: str
    filled: Value | None = None
    empty: Value | None = None

    def of(self, scope: Mapping[str, Any]) -> Any:
        """Return what is sent, or MISSING."""
        is_filled = shaping.nonempty(shaping.take(scope, self.name)) is not MISSING
        made = self.filled if is_filled else self.empty
        return MISSING if made is None else made.of(scope)

    def uses(self) -> Iterator[str]:
        """Yield the parameter, and the names in what is sent."""
        yield self.name
        yield from names_in(self.filled)
        yield from names_in(self.empty)


class Choice(Contract):
    """What is sent for one value of a parameter, or where the parameter is missing; nothing without ``made``."""

    value: JsonValue = None
    is_missing: bool = False
    made: Value | None = None


class Chosen(Contract):
    """What belongs to the value of a parameter. Other values than the recorded ones are refused."""

    kind: Literal["chosen"] = "chosen"
    name: str
    table: tuple[Choice, ...]

    def of(self, scope: Mapping[str, Any]) -> Any:
        """Return what is sent, or MISSING. Raises Unrecorded for other values."""

        def later(row: Choice) -> Any:
            return lambda: MISSING if row.made is None else row.made.of(scope)

        table = [(MISSING if row.is_missing else row.value, later(row)) for row in self.table]
        return shaping.choose(self.name, shaping.take(scope, self.name), *table)

    def uses(self) -> Iterator[str]:
        """Yield the parameter, and the names in what is sent."""
        yield self.name
        for row in self.table:
            yield from names_in(row.made)


type Value = Annotated[
    Constant | Taken | Text | ObjectValue | Listed | Each | FromPages | Address | Either | Chosen,
    Field(discriminator="kind"),
]

for _each in (ObjectValue, Listed, Each, Either, Choice, Chosen):
    _each.model_rebuild()


def names_in(value: Value | None) -> Iterator[str]:
    """Yield the dotted names of which a value is made; those within an entry begin with `EACH`."""
    if value is not None:
        yield from value.uses()
