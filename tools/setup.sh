#!/bin/sh
# Make .venv from requirements.lock and install the project into it. Needs a Python 3.12+ somewhere, and pip
# of any Python when uv is not installed. Run by `make setup`, which calls it only when something changed.
set -eu
cd "$(dirname "$0")/.."

say() { printf '%s\n' "$*" >&2; }

good_python() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1; }

find_python() {
    for name in python3.12 python3.13 python3.14 python3 python; do
        path=$(command -v "$name" 2>/dev/null) || continue
        if good_python "$path"; then printf '%s' "$path"; return; fi
    done
    for path in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[2-9]*/bin/python3 /opt/homebrew/bin/python3.1[2-9] /usr/local/bin/python3.1[2-9]; do
        if [ -x "$path" ] && good_python "$path"; then printf '%s' "$path"; return; fi
    done
    say "fireswarm needs Python 3.12 or newer and found none: install it (Debian: apt-get install python3.12, or pyenv install 3.12) and run make again."
    exit 1
}

find_uv() {
    for path in "$(command -v uv 2>/dev/null || true)" "$HOME/.local/bin/uv" "$HOME/.cargo/bin/uv" .tools/uv/bin/uv; do
        if [ -n "$path" ] && [ -x "$path" ] && "$path" --version >/dev/null 2>&1; then printf '%s' "$path"; return; fi
    done
    for candidate in "$1" python3 python; do
        if "$candidate" -m pip --version >/dev/null 2>&1; then
            say "installing uv into .tools/"
            "$candidate" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --target .tools/uv uv >&2
            printf '%s' .tools/uv/bin/uv
            return
        fi
    done
    say "neither uv nor pip is installed: install uv (or Debian's python3-pip) and run make again."
    exit 1
}

# The sandbox's tests need bubblewrap, the conformance tests of the state store a PostgreSQL server of their own.
# Without them those tests are skipped, each with its reason: set-up goes on.
have_postgresql() { command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; }

install_packages() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 0
    apt-get update -qq || true
    export DEBIAN_FRONTEND=noninteractive
    for package in "$@"; do
        if [ "$package" = postgresql ]; then
            # The tests start servers of their own: no cluster is made here, so there is none to start.
            config=/etc/postgresql-common/createcluster.conf
            [ -e "$config" ] || { mkdir -p "${config%/*}" && echo "create_main_cluster = false" >"$config"; } || continue
        fi
        apt-get install -y -qq --no-install-recommends "$package" || true
    done
}

want_packages() {
    [ "$(uname -s)" = Linux ] || return 0
    wanted=""
    command -v bwrap >/dev/null 2>&1 || wanted="bubblewrap"
    have_postgresql || wanted="$wanted postgresql"
    # shellcheck disable=SC2086 # one word a package
    [ -z "$wanted" ] || (install_packages $wanted) >/dev/null 2>&1 </dev/null
    command -v bwrap >/dev/null 2>&1 ||
        say "bubblewrap is not installed: the capability sandbox refuses to run code here (Debian: apt-get install bubblewrap)"
    have_postgresql ||
        say "PostgreSQL is not installed: its conformance tests are skipped here (Debian: apt-get install postgresql)"
    return 0
}

want_packages
python=$(find_python)
uv=$(find_uv "$python")
say "setting up .venv with $("$python" --version)"
[ -x .venv/bin/python ] && good_python .venv/bin/python || "$uv" venv --quiet --clear --python "$python" .venv
"$uv" pip sync --quiet --compile-bytecode --python .venv/bin/python --require-hashes requirements.lock
"$uv" pip install --quiet --python .venv/bin/python --no-deps --no-build-isolation --editable .
touch .venv/.ready
