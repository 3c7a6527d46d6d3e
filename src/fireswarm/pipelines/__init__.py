"""Gated steps of code in which a model only advises.

``files`` carries a run's files from step to step, ``classifying`` finds out what a source is, ``scope`` limits the
paths that may change, ``trace`` checks a schema against its sources, ``packages`` opens npm packages, ``gates`` checks
the output of a step and an advisor's answer, ``definition`` is the contract of a pipeline's file, ``loading`` finds the
files, ``rounds`` plans the steps. ``node`` has the code that the skills of the node pipeline share,
``registered`` the gates of particular pipelines.
A skill of a pipeline imports these names from here.
"""

from fireswarm.contracts.base import explain_validation
from fireswarm.contracts.frontmatter import explain_yaml, load_yaml
from fireswarm.pipelines.classifying import READERS, classify
from fireswarm.pipelines.documents.counting import (
    IGNORED_HEADERS,
    PAGING_EXTENSIONS,
    VERBS,
    count_calls,
    count_openapi,
    is_call,
    is_markdown,
    measure,
    measure_markdown,
    page_as_markdown,
)
from fireswarm.pipelines.documents.loading import LoadedDocument, Spot, load_document
from fireswarm.pipelines.files import PROJECT, SOURCES, Carried, lay_out
from fireswarm.pipelines.gates import check_advice, check_step
from fireswarm.pipelines.generated_code import code_faults
from fireswarm.pipelines.node import shaping, values
from fireswarm.pipelines.node.material import material_of
from fireswarm.pipelines.node.recording import (
    CREDENTIALS,
    RECORDING,
    SHOWN,
    RecordedNode,
    can_be_shown,
    described_operations,
    described_parameters,
    lost_operations,
    recorded_node,
)
from fireswarm.pipelines.node.replay import operation_keys, replay_cases
from fireswarm.pipelines.node.request_template import (
    NoTemplate,
    OperationTemplate,
    common_base,
    infer,
    patterns_of,
)
from fireswarm.pipelines.node.schema import (
    MAX_OPERATIONS,
    METHODS,
    Kind,
    NodeSchema,
    Operation,
    Paging,
    Parameter,
    PartCount,
    Place,
    Unread,
    field_of,
    identifier,
)
from fireswarm.pipelines.node.scopes import ANSWERS
from fireswarm.pipelines.node.shaping import quote_address
from fireswarm.pipelines.node.writing import load_schema, write_diff, write_operations
from fireswarm.pipelines.packages import (
    find_node,
    find_transpiler,
    folder_version,
    is_archive,
    listed_nodes,
    package_root,
    unpack,
)
from fireswarm.pipelines.registered.csv_contract import CONTRACT, read_unchanged
from fireswarm.pipelines.registered.node import INFERRED, TRACE
from fireswarm.pipelines.scope import Allowlist, apply_patch, changed_files, unified_diff
from fireswarm.pipelines.trace import MAX_ASSUMPTION_SHARE, is_telling, trace_faults
from fireswarm.processes.confinement.view import View
from fireswarm.processes.run import run_confined

__all__ = [
    "ANSWERS",
    "CONTRACT",
    "CREDENTIALS",
    "IGNORED_HEADERS",
    "PAGING_EXTENSIONS",
    "INFERRED",
    "MAX_ASSUMPTION_SHARE",
    "MAX_OPERATIONS",
    "METHODS",
    "PROJECT",
    "READERS",
    "RECORDING",
    "SHOWN",
    "SOURCES",
    "TRACE",
    "Allowlist",
    "Carried",
    "Kind",
    "LoadedDocument",
    "NoTemplate",
    "OperationTemplate",
    "NodeSchema",
    "Operation",
    "Paging",
    "Parameter",
    "PartCount",
    "Place",
    "RecordedNode",
    "Spot",
    "Unread",
    "VERBS",
    "View",
    "apply_patch",
    "changed_files",
    "can_be_shown",
    "check_advice",
    "check_step",
    "classify",
    "code_faults",
    "common_base",
    "count_calls",
    "count_openapi",
    "described_operations",
    "described_parameters",
    "explain_validation",
    "explain_yaml",
    "field_of",
    "find_node",
    "find_transpiler",
    "folder_version",
    "identifier",
    "infer",
    "is_archive",
    "is_call",
    "is_markdown",
    "is_telling",
    "lay_out",
    "listed_nodes",
    "load_document",
    "load_schema",
    "load_yaml",
    "lost_operations",
    "material_of",
    "measure",
    "measure_markdown",
    "operation_keys",
    "package_root",
    "patterns_of",
    "page_as_markdown",
    "quote_address",
    "read_unchanged",
    "recorded_node",
    "replay_cases",
    "run_confined",
    "shaping",
    "trace_faults",
    "unified_diff",
    "unpack",
    "values",
    "write_diff",
    "write_operations",
]
