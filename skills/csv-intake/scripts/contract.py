"""Load the contract of a CSV file, a YAML or JSON file, and check that it can be kept."""

from __future__ import annotations

import codecs
import contextlib
import re
from datetime import date, datetime
from typing import Annotated, Any, Literal, Self

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from fireswarm import pipelines

ORDERED = ("integer", "decimal", "date", "datetime")
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "bar": "|"}
MAX_COLUMNS = 500


class BadContract(Exception):
    """A file cannot be used; the message says why, and what to do."""


def _as_text(value: Any) -> Any:
    """Return a value of YAML as the text that a CSV file has. Raises ValueError for true and false, unless quoted."""
    if isinstance(value, bool):
        raise ValueError('write true, false, yes and no in quotes: "yes"')
    if isinstance(value, datetime | date):
        return value.isoformat()
    return str(value) if isinstance(value, int | float) else value


Value = Annotated[str, BeforeValidator(_as_text)]


class Column(BaseModel):
    """A column: the type of its values, and the rules that they keep. Missing rules allow all."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Value = Field(min_length=1, max_length=200)
    type: Literal["text", "integer", "decimal", "boolean", "date", "datetime"] = "text"
    required: bool = False
    unique: bool = False
    optional: bool = False
    minimum: Value = ""
    maximum: Value = ""
    values: tuple[Value, ...] = Field(default=(), max_length=10_000)
    pattern: str = Field(default="", max_length=500)
    format: str = Field(default="", max_length=60)

    @model_validator(mode="after")
    def _is_possible(self) -> Self:
        if (self.minimum or self.maximum) and self.type not in ORDERED:
            raise ValueError(f"minimum and maximum need a type of {', '.join(ORDERED)}")
        if self.format and self.type not in ("date", "datetime"):
            raise ValueError("format needs the type date or datetime")
        try:
            re.compile(self.pattern)
        except (re.error, RecursionError) as error:
            raise ValueError(f"pattern is no regular expression of Python: {error}") from error
        return self


def _as_delimiter(value: Any) -> Any:
    return DELIMITERS.get(value, value) if isinstance(value, str) else value


def _as_encoding(value: Any) -> Any:
    """Return the usual name of an encoding, such as utf-8 for UTF8."""
    with contextlib.suppress(LookupError, TypeError):
        return codecs.lookup(value).name
    return value


class Contract(BaseModel):
    """The contract of a CSV file. Without a delimiter, each file's is found by the names of the columns."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str = Field(min_length=1, max_length=60)
    encoding: Annotated[str, BeforeValidator(_as_encoding)] = "utf-8"
    delimiter: Annotated[Literal["", ",", ";", "\t", "|"], BeforeValidator(_as_delimiter)] = ""
    decimal_comma: bool = False
    null_values: tuple[Value, ...] = ("",)
    extra_columns: bool = False
    columns: tuple[Column, ...] = Field(min_length=1, max_length=MAX_COLUMNS)

    @model_validator(mode="after")
    def _is_one_table(self) -> Self:
        names = [column.name for column in self.columns]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two columns are called {twice[0]!r}: rename one")
        try:
            "".encode(self.encoding)  # `codecs.lookup` also finds base64 and the like
        except LookupError as error:
            raise ValueError(
                f"there is no encoding {self.encoding!r}: write utf-8, latin-1, cp1252 or utf-16"
            ) from error
        return self


def load_contract(content: bytes, name: str) -> Contract:
    """Return the contract in a YAML or JSON file. Raises BadContract with the field and what to do."""
    try:
        loaded = pipelines.load_yaml(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise BadContract(f"{name} is not UTF-8 text ({error}): save it as UTF-8") from error
    except yaml.YAMLError as error:
        raise BadContract(f"{name} is neither YAML nor JSON: {pipelines.explain_yaml(error)}") from error
    if not isinstance(loaded, dict) or "columns" not in loaded:
        raise BadContract(f"{name} is no contract: it needs `columns`, a list with the name and type of each column")
    try:
        return Contract.model_validate({"name": name.partition(".")[0], **loaded})
    except ValidationError as error:
        raise BadContract(f"{name}: {pipelines.explain_validation(error)}") from error
