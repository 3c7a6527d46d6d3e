# Functions for setup.sh and lock.sh: find Python and uv. Both scripts run in the repository's folder.
# shellcheck shell=sh

say() { printf '%s\n' "$*" >&2; }

# pyenv's shim of a version fails unless that version is selected, so the versions themselves are listed.
# The root of pyenv is PYENV_ROOT, ~/.pyenv, or the folder above its `shims` or `bin` on the PATH.
pyenv_roots() {
    [ -z "${PYENV_ROOT:-}" ] || printf '%s\n' "$PYENV_ROOT"
    [ -z "${HOME:-}" ] || printf '%s\n' "$HOME/.pyenv"
    printf '%s\n' "$PATH" | tr ':' '\n' | sed -n -e 's,/shims/*$,,p' -e 's,/bin/*$,,p'
}

python_candidates() {
    for name in python3.12 python3.13 python3.14 python3 python; do
        command -v "$name" 2>/dev/null || true
    done
    pyenv_roots | while IFS= read -r root; do
        printf '%s\n' "$root"/versions/3.1[2-9]*/bin/python3
    done
    printf '%s\n' /opt/homebrew/bin/python3.1[2-9] /usr/local/bin/python3.1[2-9]
}

good_python() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 12))' >/dev/null 2>&1 </dev/null; }

# Print the path of a Python 3.12 or newer.
find_python() {
    found=$(python_candidates | while IFS= read -r path; do
        if [ -x "$path" ] && good_python "$path"; then printf '%s' "$path"; break; fi
    done)
    [ -n "$found" ] || {
        say "fireswarm needs Python 3.12 or newer and found none: install it (Debian: apt-get install python3.12, or pyenv install 3.12) and run make again."
        exit 1
    }
    printf '%s' "$found"
}

PINNED_UV=.tools/uv/bin/uv

# The version in tools/uv.txt, the only place that names it.
uv_version() { sed -n 's/^uv==\([0-9.]*\).*/\1/p' tools/uv.txt; }

have_pinned_uv() { [ "$("$PINNED_UV" --version 2>/dev/null | cut -d ' ' -f 2)" = "$(uv_version)" ]; }

# Print the path of an installed uv: the pinned one, else any on the PATH or in its usual places, else nothing.
find_uv() {
    if have_pinned_uv; then printf '%s' "$PINNED_UV"; return; fi
    for path in "$(command -v uv 2>/dev/null || true)" "${HOME:-}/.local/bin/uv" "${HOME:-}/.cargo/bin/uv"; do
        if [ -x "$path" ] && "$path" --version >/dev/null 2>&1; then printf '%s' "$path"; return; fi
    done
}

# Print the first Python that has pip; the argument comes first.
find_pip() {
    for candidate in "$1" python3 python; do
        if "$candidate" -m pip --version >/dev/null 2>&1; then printf '%s' "$candidate"; return; fi
    done
    say "neither uv nor pip is installed: install one of them (Debian: apt-get install python3-pip) and run make again."
    exit 1
}

# Install the pinned uv into .tools/ with the pip of the Python given.
install_uv() {
    rm -rf .tools/uv
    "$1" -m pip install --quiet --disable-pip-version-check --root-user-action=ignore --only-binary=:all: \
        --require-hashes --requirement tools/uv.txt --target .tools/uv
}

# uv trusts the certificates it brings along, pip those of the system. Make uv do as pip does.
# Without a home folder to write to, uv's cache goes into .tools/.
prepare_uv() {
    if [ -z "${UV_SYSTEM_CERTS:-}${SSL_CERT_FILE:-}" ]; then
        for bundle in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/ca-bundle.pem; do
            if [ -r "$bundle" ]; then export UV_SYSTEM_CERTS=true; fi
        done
    fi
    if [ -z "${UV_CACHE_DIR:-}${XDG_CACHE_HOME:-}" ] && [ ! -w "${HOME:-}" ]; then
        export UV_CACHE_DIR=.tools/cache
    fi
}

# Set $python and $uv for a script that installs a tool into .tools/.
find_or_install_uv() {
    python=$(find_python)
    uv=$(find_uv)
    if [ -z "$uv" ]; then
        install_uv "$(find_pip "$python")" >&2
        uv=$PINNED_UV
    fi
    prepare_uv
}
