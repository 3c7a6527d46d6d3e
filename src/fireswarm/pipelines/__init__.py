"""Gated steps of code in which a model only advises.

``files`` carries a run's files from step to step, ``scope`` limits the paths that may change, ``trace`` checks a schema
against its sources, ``packages`` opens npm packages, ``gates`` checks the output of a step and an advisor's answer,
``node`` is the node pipeline.
A skill of a pipeline imports these names from here.
"""

from fireswarm.pipelines.files import PROJECT, SOURCES, Carried, lay_out
from fireswarm.pipelines.gates import check_advice, check_step
from fireswarm.pipelines.generated_code import code_faults
from fireswarm.pipelines.node import shaping, values
from fireswarm.pipelines.node.recording import (
    CREDENTIALS,
    RECORDING,
    RecordedNode,
    described_operations,
    lost_operations,
    recorded_node,
)
from fireswarm.pipelines.node.replay import operation_keys, replay_cases
from fireswarm.pipelines.node.request_template import (
    NoTemplate,
    OperationTemplate,
    common_base,
    infer,
)
from fireswarm.pipelines.node.schema import (
    METHODS,
    Kind,
    NodeSchema,
    Operation,
    Parameter,
    Place,
    Unread,
    field_of,
    identifier,
)
from fireswarm.pipelines.node.scopes import ANSWERS
from fireswarm.pipelines.node.steps import next_round
from fireswarm.pipelines.node.writing import material_of, write_diff, write_operations
from fireswarm.pipelines.packages import find_transpiler, is_archive, listed_nodes, package_root, unpack
from fireswarm.pipelines.scope import Allowlist, apply_patch, changed_files, unified_diff
from fireswarm.pipelines.trace import MAX_ASSUMPTION_SHARE, trace_faults
from fireswarm.processes.confinement.view import View
from fireswarm.processes.run import run_confined

__all__ = [
    "ANSWERS",
    "CREDENTIALS",
    "MAX_ASSUMPTION_SHARE",
    "METHODS",
    "PROJECT",
    "RECORDING",
    "SOURCES",
    "Allowlist",
    "Carried",
    "Kind",
    "NoTemplate",
    "OperationTemplate",
    "NodeSchema",
    "Operation",
    "Parameter",
    "Place",
    "RecordedNode",
    "Unread",
    "View",
    "apply_patch",
    "changed_files",
    "check_advice",
    "check_step",
    "code_faults",
    "common_base",
    "described_operations",
    "field_of",
    "find_transpiler",
    "identifier",
    "infer",
    "is_archive",
    "lay_out",
    "listed_nodes",
    "lost_operations",
    "material_of",
    "next_round",
    "operation_keys",
    "package_root",
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
