"""Placeholder until enforcement is in: see IndexSet."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from fireswarm.firelite.paths import FieldPath
from fireswarm.firelite.query import Query


class IndexSet:
    """The indexes of a ``firestore.indexes.json``."""

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read a file."""
        return cls()

    @classmethod
    def parse(cls, content: dict[str, Any]) -> Self:
        """Parse the content of a file."""
        return cls()

    def check(self, query: Query, aggregated: Sequence[FieldPath] = ()) -> None:
        """Check a query."""
