"""Every regular expression of the sources and the skills takes time in proportion to the text."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from fireswarm.redaction.rules import published_rules
from fireswarm.redaction.search import prefix_tree
from fireswarm.redaction.shapes import ADDRESS, SHAPES
from tests.support.part import choose_cases
from tests.support.patterns import Examples, Use, evaluate, find_uses, module_names, slow_attacks, too_slow

ROOT = Path(__file__).parents[2]
FOLDERS = ("src/fireswarm", "skills")


def _in_table(file: str, name: str, column: int) -> list[str]:
    """Return a column of a table of patterns that a module compiles one by one."""
    return [row[column] for row in module_names(ROOT / file)[name]]


def _git_keys() -> list[str]:
    """Return the patterns in the generator expression that compiles them. They are used for full matches."""
    table = module_names(ROOT / "src/fireswarm/processes/git.py").assigned["_EXECUTED"]
    assert isinstance(table, ast.Call)
    [made] = table.args
    assert isinstance(made, ast.GeneratorExp)
    return [rf"\A(?s:{pattern})\Z" for pattern, _ in evaluate(made.generators[0].iter, {})]


def _options() -> list[str]:
    """Return the patterns of options of commands, without what precedes an option."""
    return list(module_names(ROOT / "src/fireswarm/redaction/commands.py")["_OPTIONS"].values())


EXAMPLES: Examples = {
    "src/fireswarm/api/paging.py: f'{collection}/[^/]+'": ["agent_tasks/[^/]+"],
    "src/fireswarm/capabilities/session_files/grep.py: pattern": [],  # runs in a process that is ended after seconds
    "src/fireswarm/processes/git.py: pattern": _git_keys(),
    "src/fireswarm/redaction/commands.py: _BEFORE_OPTION + _OPTIONS[kind]": _options(),
    "src/fireswarm/redaction/redactor.py: pattern": [r"correct\ horse\ battery|hunter22|aaaaaaaa"],
    "src/fireswarm/redaction/redactor.py: pattern.encode()": [r"correct\ horse\ battery|hunter22|aaaaaaaa"],
    "src/fireswarm/redaction/search.py: prefix_tree(hints)": [prefix_tree(["ab", "abc", "b"])],
    "src/fireswarm/redaction/shapes.py: source": [shape.source for shape in (*SHAPES, ADDRESS, *published_rules())],
    "skills/csv-forecast/scripts/target.py: f'(?<!\\\\w){re.escape(name.lower())}(?!\\\\w)'": [r"(?<!\w)a\ b(?!\w)"],
    "skills/csv-intake/scripts/contract.py: self.pattern": [],  # of the contract, compiled only
    "skills/csv-validator/scripts/cases.py: column['pattern']": [],  # of the contract, in the skill's process
    "skills/csv-validator/scripts/validator.py: column['pattern']": [],  # of the contract, likewise or confined
    "skills/keyword-search-extractor/scripts/search_keywords.py: f'(?<!\\\\w)(?:{'|'.join(parts)})(?!\\\\w)'": [
        r"(?<!\w)(?:lease|time\s+to\s+live|a)(?!\w)"
    ],
    "skills/keyword-search-extractor/scripts/search_keywords.py: regex": [],  # of the request, in the skill's process
    'skills/schema-infer/scripts/openapi.py: f"""\\\\s*["\']?{re.escape(path)}["\']?\\\\s*:"""': [
        r"""\s*["']?/a/b["']?\s*:"""
    ],
    "src/fireswarm/pipelines/trace.py: f'(?<!\\\\w){re.escape(value)}(?!\\\\w)'": [r"(?<!\w)everything(?!\w)"],
    "src/fireswarm/pipelines/classifying.py: pattern": _in_table("src/fireswarm/pipelines/classifying.py", "RULES", 0),
    "src/fireswarm/pipelines/classifying.py: content": _in_table("src/fireswarm/pipelines/classifying.py", "RULES", 1),
}


def test_no_pattern_takes_longer_than_in_proportion_to_the_text(pytestconfig: pytest.Config) -> None:
    uses = list(find_uses(ROOT, FOLDERS, EXAMPLES))
    assert len(uses) > 150
    assert [slow for use in choose_cases(pytestconfig, uses, 40) for slow in slow_attacks(use)] == []


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"(?:\s+|#[^\n]*\n)*[rR]?\"", "match"), (r"\s+x", "search"), (r"(a+)+$", "match"), (r"a*a*a*b", "match"),
        (r"!\[[^\]]*\]\(", "search"), (r"(`+)(?:(?!\1).)*?\1", "search"), (r"^#+\s+(.+?)\s*#*$", "match"),
        (r"\(.*?\)", "search"), (r"(?:.*,)*x", "match"), (r"eyJ[\w-]{10,}\.[\w-]{10,}", "search"),
        (r"\b[\w.]+@", "search"), (r"(x+x+)+y", "search"), (r"([^,]*,?)*z", "fullmatch"), (r"(?i)a[^b]*b", "search"),
    ],
)  # fmt: skip
def test_slow_patterns_are_found(pattern: str, method: str) -> None:
    assert list(slow_attacks(Use("here", pattern, 0, (method,))))


@pytest.mark.parametrize("pattern", [r"(?<!\s)\s++x", r"[^\W_]+", r"(?:a|b)++c?", r"x{2,80}y", r'"[^"\n]{1,300}+"'])
def test_fast_patterns_are_not_taken_for_slow(pattern: str) -> None:
    assert list(slow_attacks(Use("here", pattern, 0, ("search",)))) == []


def test_patterns_are_collected_with_their_flags_and_methods(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(
        'import re\nPART = "a"\n_ONE = re.compile(rf"{PART}+", re.I)\n_ONE.match("x")\nTWO = re.compile(b"b*")\n'
        're.sub("c", "d", "e", flags=re.DOTALL)\ndef f(x): return re.search(x, "y")\n'
    )
    (tmp_path / "b.py").write_text("import a\na.TWO.fullmatch(b'')\n")
    uses = [(use.pattern, use.flags, use.methods) for use in find_uses(tmp_path, ["."], {"a.py: x": ["dynamic"]})]
    assert uses == [
        ("a+", int(re.I), ("match",)), (b"b*", 0, ("fullmatch",)), ("c", int(re.DOTALL), ("search",)),
        ("dynamic", 0, ("search",)),
    ]  # fmt: skip
    with pytest.raises(AssertionError, match=r"a\.py: x"):
        list(find_uses(tmp_path, ["."], {}))


def test_quadratic_work_is_stopped_by_the_limit() -> None:
    assert too_slow(re.compile(r"\s+x").search, lambda size: " " * size, 32_000, 0.1)
    assert not too_slow(re.compile(r"\s++x").match, lambda size: " " * size, 32_000, 0.1)
