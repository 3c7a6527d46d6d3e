"""Generated code uses a list of modules and its transport, and advice changes no file that a template has written."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

from fireswarm.errors import InvalidInput
from fireswarm.pipelines.allowed_code import LEADING, MODULES, use_faults
from fireswarm.pipelines.scope import Allowlist, apply_patch

PATH = "nodes/made/operations.py"
REFUSED = {
    "import os": "os cannot be imported",
    "import os.path as p": "os.path cannot be imported",
    "from urllib.request import urlopen": "urllib.request cannot be imported",
    "import urllib": "urllib cannot be imported",
    "import urllib.parse\nx = urllib.request.build_opener": "write `from urllib.parse import NAME`",
    "import importlib": "importlib cannot be imported",
    "from .. import other": ".. cannot be imported",
    "from nodes.made.transport import os": "nodes.made.transport cannot be imported",
    "from .transport import urlopen": "transport has no urlopen",
    "from . import transport": "not the module",
    "from .shaping import *": "* takes all",
    "from .shaping import json": "json is a module",
    "from dataclasses import sys": ".sys leads out",
    "from random import _os": "._os leads out",
    "x = __import__('os')": "__import__ runs text",
    "x = getattr(print, '__self__')": "getattr runs text",
    "run = eval": "eval runs text",
    "exec('import os')": "exec runs text",
    "x = open('/etc/passwd')": "open runs text",
    "import json\nx = json.codecs.open": ".codecs leads out",
    "import json\nx = [json]": "json is a module",
    "import json as j\nx = j": "j is a module",
    "x = ().__class__": ".__class__ leads out",
    "x = (i for i in ()).gi_frame.f_back": ".gi_frame leads out",
    "match 1:\n    case object(__class__=x): pass": ".__class__ leads out",
    "import string\nx = string.Formatter().get_field": ".Formatter leads out",
    "import dataclasses\nx = dataclasses._create_fn": "._create_fn leads out",
    "import typing\nx = typing.get_type_hints": ".get_type_hints leads out",
    "import sys": "sys cannot be imported",
    "import atexit": "atexit cannot be imported",
    "import subprocess": "subprocess cannot be imported",
    "import http.client": "http.client cannot be imported",
    "from pathlib import Path": "pathlib cannot be imported",
    "from _pytest import python": "_pytest cannot be imported",
    "import pytest": "pytest cannot be imported",
    "def f():\n    import socket": "socket cannot be imported",
}
USUAL = """from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any
from urllib.parse import quote

from .shaping import through
from .transport import Send, credential


class Page:
    def __init__(self, number: int) -> None:
        self._number = number


def link_get(parameters: dict[str, Any], send: Send) -> Any:
    return send("GET", f"/links/{quote(str(parameters['id']))}", body=json.dumps({}), query={"at": datetime.now(UTC)})
"""


@pytest.mark.parametrize("code", list(REFUSED))
def test_use_is_refused_with_line_and_reason(code: str) -> None:
    faults = use_faults(PATH, code)
    assert any(REFUSED[code] in each and each.startswith(f"{PATH}:") for each in faults), faults


def test_usual_code_of_a_node_is_accepted() -> None:
    assert use_faults(PATH, USUAL) == []


def test_advised_tests_have_pytest_and_the_node_only() -> None:
    path = "tests/test_made_advised.py"
    assert use_faults(path, "import pytest\nfrom nodes.made import run\n") == []
    assert use_faults(path, "import os\n") and use_faults(path, "import _pytest.python\n")
    assert use_faults(path, "from nodes import made\n") and use_faults(path, "from nodes.made.transport import os\n")


def test_no_allowed_module_leads_to_one_that_is_not() -> None:
    for name in MODULES - {"__future__"}:
        module = importlib.import_module(name)
        for attribute, value in vars(module).items():
            if isinstance(value, ModuleType) and not attribute.startswith("_"):
                assert attribute in LEADING or value.__name__ in MODULES, f"{name}.{attribute}"


@pytest.mark.parametrize(
    "file",
    [
        "transport.py",
        "node.py",
        "client.py",
        "__init__.py",
        "schema.json",
        "shaping.py",
        "paging.py",
        "pyproject.toml",
        "README.md",
    ],
)
def test_fix_of_a_fixed_file_is_refused_by_name(file: str) -> None:
    path = f"nodes/made/{file}"
    patch = f"--- a/{path}\n+++ b/{path}\n@@ -1 +1 @@\n-one\n+two\n"
    with pytest.raises(InvalidInput, match=f"{path} is fixed"):
        apply_patch(patch, {path: "one\n"}, Allowlist(("nodes/made/**",)), 20)
