"""Prepare a pull request: a branch and a patch, made with git. Nothing is merged unless the operator enabled it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fireswarm import (
    MAX_DETAIL_CHARS,
    SkillRequest,
    SkillResult,
    count_noun,
    errors,
    pipelines,
    run_git,
    truncate,
)

GIT_SECONDS = 60.0
AUTHOR = {
    "GIT_AUTHOR_NAME": "fireswarm",
    "GIT_AUTHOR_EMAIL": "fireswarm@localhost",
    "GIT_COMMITTER_NAME": "fireswarm",
    "GIT_COMMITTER_EMAIL": "fireswarm@localhost",
}


def run(request: SkillRequest) -> SkillResult:
    """``pull_request.patch`` and ``pull_request.json``; with a repository in the request also a branch in it."""
    carried = pipelines.Carried.of(request)
    snapshot = carried.json("request_snapshot.json")
    result = carried.json("validation.json")
    if not result["passed"]:
        told = f"the tests do not pass ({result['pytest']}): no pull request can be prepared"
        return SkillResult.failure(told)
    branch = f"fireswarm/node-{snapshot['node_name']}"
    moment = str(snapshot["requested_at"])  # a resumed run makes the same commit
    try:
        with tempfile.TemporaryDirectory() as place:
            git = _Git(Path(place), moment)
            made = _prepare(git, carried, snapshot, branch, request)
    except errors.GitFailed as failure:
        return SkillResult.failure(str(failure))
    carried.write("pull_request.patch", made.pop("patch"), f"for `git am`: {branch}")
    carried.write_json("pull_request.json", made)
    merged = "merged" if made["merge_executed"] else "not merged"
    where = f"branch {branch} in {snapshot['repository']}" if made["base"] else "a patch for `git am`"
    actions = () if made["merge_executed"] else ("review the pull request, then merge it",)
    return SkillResult(
        summary=f"{where}: {count_noun(len(made['files']), 'file')}, {merged}",
        artifacts=carried.artifacts(),
        next_recommended_actions=actions,
        confidence=1.0,
    )


class _Git:
    """Run git in one folder with a fixed time: the same input makes the same commits."""

    def __init__(self, folder: Path, moment: str) -> None:
        self.folder = folder
        self.environment = {**AUTHOR, "GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment}

    def __call__(self, *arguments: str, at: Path | None = None) -> str:
        place = at or self.folder
        bare = place if not (place / ".git").exists() and (place / "objects").is_dir() else None
        said = run_git(place, *arguments, environment=self.environment, git_dir=bare, timeout_seconds=GIT_SECONDS)
        return said.decode("utf-8", "replace")


def _prepare(
    git: _Git, carried: pipelines.Carried, snapshot: Mapping[str, Any], branch: str, request: SkillRequest
) -> dict[str, Any]:
    files = carried.tree(pipelines.PROJECT)
    named = None if request.constraints.get("read_only") else snapshot["repository"]
    repository = Path(str(named)).expanduser().resolve() if named else None
    work = git.folder / "work"
    if repository is None:
        git("init", "--quiet", f"--initial-branch={branch}", str(work))
        base = ""
    else:
        base = git("symbolic-ref", "--short", "HEAD", at=repository).strip()
        git("worktree", "add", "--quiet", "--detach", str(work), base, at=repository)
    try:
        pipelines.lay_out(files, work)
        git("add", "--all", "--", *sorted(files), at=work)
        git("commit", "--quiet", "--message", _message(snapshot, carried, request), at=work)
        commit = git("rev-parse", "HEAD", at=work).strip()
        merged = False
        if repository is not None:
            git("update-ref", f"refs/heads/{branch}", commit, at=repository)
            merged = _merge(git, repository, base, commit, request)
        return {
            "branch": branch,
            "base": base or None,
            "commit": commit,
            "files": sorted(files),
            "merge_executed": merged,
            "human_review_required": request.limits.require_human_review and not merged,
            "patch": git("format-patch", "-1", "--stdout", "--no-signature", commit, at=work),
        }
    finally:
        if repository is not None:
            git("worktree", "remove", "--force", str(work), at=repository)


def _merge(git: _Git, repository: Path, base: str, commit: str, request: SkillRequest) -> bool:
    """Move the base to the branch, if the operator enabled that and the base is not checked out."""
    if not request.limits.auto_merge_enabled:
        return False
    if f"branch refs/heads/{base}\n" in git("worktree", "list", "--porcelain", at=repository) and not _bare(
        git, repository
    ):
        return False
    git("update-ref", f"refs/heads/{base}", commit, git("rev-parse", base, at=repository).strip(), at=repository)
    return True


def _bare(git: _Git, repository: Path) -> bool:
    return git("rev-parse", "--is-bare-repository", at=repository).strip() == "true"


def _message(snapshot: Mapping[str, Any], carried: pipelines.Carried, request: SkillRequest) -> str:
    review = "\n\nA person has to review this before it is merged." if request.limits.require_human_review else ""
    trace = carried.json("trace_map.json")["fields"]
    assumed = sorted(name for name, entry in trace.items() if entry["kind"] == "ASSUMPTION")
    told = f"\n\nAssumed, not read from the source: {', '.join(assumed)}." if assumed else ""
    return (
        f"Node {snapshot['node_name']}: {truncate(snapshot['objective'], MAX_DETAIL_CHARS)}\n\n"
        f"Made by pipeline run {snapshot['correlation_id']}; {carried.json('validation.json')['pytest']}.{told}{review}"
    )
