"""Prepare a pull request: a branch and a patch, made with git. Nothing is merged unless the operator enabled it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from itertools import count
from pathlib import Path
from typing import Any

from fireswarm import (
    MAX_DETAIL_CHARS,
    SkillRequest,
    SkillResult,
    ask_git,
    count_noun,
    errors,
    pipelines,
    read_branch,
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
    try:
        with tempfile.TemporaryDirectory() as place:
            made = _prepare(Path(place), carried, snapshot, branch, request)
    except errors.GitFailed as failure:
        return SkillResult.failure(str(failure))
    carried.write("pull_request.patch", made.pop("patch"), f"for `git am`: {made['branch']}")
    carried.write_json("pull_request.json", made)
    merged = "merged" if made["merge_executed"] else "not merged"
    where = f"branch {made['branch']} in {request.context['repository']}" if made["base"] else "a patch for `git am`"
    actions = () if made["merge_executed"] else ("review the pull request, then merge it",)
    return SkillResult(
        summary=f"{where}: {count_noun(len(made['files']), 'file')}, {merged}",
        artifacts=carried.artifacts(),
        next_recommended_actions=actions,
        confidence=1.0,
    )


class _Git:
    """Run git on one repository with a fixed time: the same input makes the same commits.

    The commands start no program that the repository names, since no file of a work tree is made or read. ``place`` is
    a folder of ours for the index; that of the repository stays as it is.
    """

    def __init__(self, repository: Path, place: Path, moment: str) -> None:
        self.repository = Path(ask_git(repository, "rev-parse", "--path-format=absolute", "--git-common-dir"))
        self.place = place
        times = {"GIT_AUTHOR_DATE": moment, "GIT_COMMITTER_DATE": moment}
        self.environment = {**AUTHOR, **times, "GIT_INDEX_FILE": str(place / "index")}

    def __call__(self, *arguments: str, stdin: str = "") -> str:
        environment = self.environment if arguments[0] != "format-patch" else {}
        said = run_git(
            self.repository,
            *arguments,
            stdin=stdin.encode(),
            environment=environment,
            git_dir=self.repository,
            timeout_seconds=GIT_SECONDS,
        )
        return said.decode("utf-8", "replace")

    def commit(self, files: Mapping[str, str], base: str, message: str) -> str:
        """Return a new commit of *base*, or of nothing, with *files*. Raises GitFailed if they change nothing."""
        self("read-tree", base or "--empty")
        copies = [self.place / f"file-{number}" for number, _ in enumerate(files)]
        for copy, text in zip(copies, files.values(), strict=True):
            copy.write_text(text, encoding="utf-8", newline="")
        blobs = self(
            "hash-object", "-w", "--no-filters", "--stdin-paths", stdin="".join(f"{copy}\n" for copy in copies)
        )
        listed = "".join(f"100644 {blob}\t{name}\0" for name, blob in sorted(zip(files, blobs.split(), strict=True)))
        self("update-index", "-z", "--index-info", stdin=listed)
        tree = self("write-tree").strip()
        if base and tree == self("rev-parse", f"{base}^{{tree}}").strip():
            raise errors.GitFailed("the files are in the repository already: there is nothing to commit")
        parents = ("-p", base) if base else ()
        return self("commit-tree", tree, *parents, "-F", "-", stdin=f"{message}\n").strip()

    def create_branch(self, wanted: str, commit: str) -> str:
        """Create a branch at a commit; return its name, with a number if another commit has the name. None is moved."""
        listed = self("for-each-ref", "--format=%(refname) %(objectname)", f"refs/heads/{wanted}*")
        there = dict(line.split(" ") for line in listed.splitlines())
        names = (f"{wanted}-{number}" if number > 1 else wanted for number in count(1))
        name = next(each for each in names if there.get(f"refs/heads/{each}", commit) == commit)
        if f"refs/heads/{name}" not in there:
            self("update-ref", f"refs/heads/{name}", commit, "")  # "": it must not be there
        return name


def _prepare(
    place: Path, carried: pipelines.Carried, snapshot: Mapping[str, Any], branch: str, request: SkillRequest
) -> dict[str, Any]:
    moment = str(snapshot["requested_at"])  # a resumed run makes the same commit
    files = carried.tree(pipelines.PROJECT)
    named = None if request.constraints.get("read_only") else request.context.get("repository")
    if not named:
        run_git(place, "init", "--quiet", f"--initial-branch={branch}", timeout_seconds=GIT_SECONDS)
    repository = Path(str(named)).expanduser().resolve() if named else place
    git = _Git(repository, place, moment)
    base, before = read_branch(repository, timeout_seconds=GIT_SECONDS) if named else ("", "")
    commit = git.commit(files, before, _message(snapshot, carried, request))
    branch = git.create_branch(branch, commit)
    merged = bool(named) and _merge(git, base, before, commit, request)
    return {
        "branch": branch,
        "base": base or None,
        "commit": commit,
        "files": sorted(files),
        "merge_executed": merged,
        "human_review_required": request.limits.require_human_review and not merged,
        "patch": git("format-patch", "-1", "--stdout", "--no-signature", commit),
    }


def _merge(git: _Git, base: str, before: str, commit: str, request: SkillRequest) -> bool:
    """Move the base to the branch, if the operator enabled that and the base is not checked out."""
    if not request.limits.auto_merge_enabled:
        return False
    if f"branch refs/heads/{base}\n" in git("worktree", "list", "--porcelain") and not _is_bare(git):
        return False
    git("update-ref", f"refs/heads/{base}", commit, before)
    return True


def _is_bare(git: _Git) -> bool:
    return git("rev-parse", "--is-bare-repository").strip() == "true"


def _message(snapshot: Mapping[str, Any], carried: pipelines.Carried, request: SkillRequest) -> str:
    review = "\n\nA person has to review this before it is merged." if request.limits.require_human_review else ""
    trace = carried.json("trace_map.json")["fields"]
    assumed = sorted(name for name, entry in trace.items() if entry["kind"] == "ASSUMPTION")
    told = f"\n\nAssumed, not read from the source: {', '.join(assumed)}." if assumed else ""
    return (
        f"Node {snapshot['node_name']}: {truncate(snapshot['objective'], MAX_DETAIL_CHARS)}\n\n"
        f"Made by pipeline run {snapshot['correlation_id']}; {carried.json('validation.json')['pytest']}.{told}{review}"
    )
