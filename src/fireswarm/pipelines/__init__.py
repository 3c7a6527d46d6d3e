"""Gated steps of code in which a model only advises.

``files`` carries a run's files from step to step, ``scope`` limits the paths that may change, ``trace`` checks a schema
against its sources, ``gates`` checks the output of a step and an advisor's answer, ``node`` is the node pipeline.
"""

from fireswarm.pipelines.files import Carried
from fireswarm.pipelines.gates import check_advice, check_step
from fireswarm.pipelines.scope import Allowlist, apply_patch, changed_files, unified_diff
from fireswarm.pipelines.trace import MAX_ASSUMPTION_SHARE, trace_faults

__all__ = [
    "MAX_ASSUMPTION_SHARE",
    "Allowlist",
    "Carried",
    "apply_patch",
    "changed_files",
    "check_advice",
    "check_step",
    "trace_faults",
    "unified_diff",
]
