"""The deterministic backbone: steps that are code, an advisor that is asked within bounds, and gates between them.

``files`` carries a run's files from step to step, ``scope`` bounds what may be changed, ``trace`` holds a schema to
its sources, ``gates`` checks what a step leaves and what an advisor answers, ``steps`` decides what comes next.
"""

from fireswarm.backbone.files import Carried
from fireswarm.backbone.gates import check_advice, check_step
from fireswarm.backbone.scope import Allowlist, apply_patch, changed_files, unified_diff
from fireswarm.backbone.trace import MAX_ASSUMPTION_SHARE, trace_faults

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
