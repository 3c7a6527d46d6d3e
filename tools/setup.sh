#!/bin/sh
# Set up .venv. `setup.sh run` installs what `make demo` needs, `setup.sh dev` also what `make test` needs.
# The Makefile calls it only when something changed. It needs Python 3.12 or newer, and uv or pip.
set -eu
cd "$(dirname "$0")/.."
. tools/find.sh

kind=${1:-run}
case $kind in
run) lock=requirements-run.lock ;;
dev) lock=requirements.lock ;;
*)
    say "usage: setup.sh run | dev"
    exit 2
    ;;
esac

# One line for each phase: what it does, and when it has ended the seconds it took.
number=0
begin() {
    number=$((number + 1))
    began=$(date +%s)
    printf '[%s/%s] %s ... ' "$number" "$total" "$1" >&2
}
end() { say "$(($(date +%s) - began)) s"; }

# Run the command of a phase. Its output is shown only if it fails, and then set-up ends.
must() {
    output=$("$@" 2>&1 </dev/null) || {
        say "failed"
        say "$output"
        exit 1
    }
}

# System packages, for `make test` only: the sandbox's tests need bubblewrap, the tests of the PostgreSQL store a
# PostgreSQL server of their own, those of fast searches ripgrep, those of the console Chromium, those of shifted clocks
# faketime. Without them those tests are skipped, so a failure here does not end set-up.
have_postgresql() { command -v initdb >/dev/null 2>&1 || ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1; }

missing_packages() {
    [ "$kind" = dev ] && [ "$(uname -s)" = Linux ] || return 0
    command -v bwrap >/dev/null 2>&1 || printf 'bubblewrap '
    have_postgresql || printf 'postgresql '
    command -v rg >/dev/null 2>&1 || printf 'ripgrep '
    command -v chromium >/dev/null 2>&1 || printf 'chromium '
    command -v faketime >/dev/null 2>&1 || printf 'faketime '
}

may_install() { [ -z "${FIRESWARM_NO_SYSTEM_PACKAGES:-}" ] && [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

install_package() {
    if [ "$1" = postgresql ]; then
        # The tests start servers themselves, so Debian's set-up must not create and start one.
        config=/etc/postgresql-common/createcluster.conf
        [ -e "$config" ] || { mkdir -p "${config%/*}" && echo "create_main_cluster = false" >"$config"; } || return 1
    fi
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" </dev/null
}

install_packages() {
    say "Some tests need system packages that are missing: bubblewrap for the sandbox, postgresql for the state store,"
    say "ripgrep for fast searches, chromium for the console, faketime for clocks that are off."
    say "This is root with apt-get, so they are installed now. FIRESWARM_NO_SYSTEM_PACKAGES=1 prevents that and skips those tests."
    begin "apt-get update"
    apt-get update -qq >/dev/null 2>&1 </dev/null || true
    end
    for package in "$@"; do
        begin "apt-get install -y --no-install-recommends $package"
        if (install_package "$package") >/dev/null 2>&1; then end; else say "failed"; fi
    done
}

say_skipped() {
    for package in $(missing_packages); do
        case $package in
        bubblewrap) say "bubblewrap is not installed: tests that need the sandbox are skipped (Debian: apt-get install bubblewrap)" ;;
        postgresql) say "PostgreSQL is not installed: tests of the PostgreSQL store are skipped (Debian: apt-get install postgresql)" ;;
        ripgrep) say "ripgrep is not installed: tests of searches with it are skipped (Debian: apt-get install ripgrep)" ;;
        chromium) say "Chromium is not installed: tests of the console in a browser are skipped (Debian: apt-get install chromium)" ;;
        faketime) say "faketime is not installed: no clock is off in tests of chaos (Debian: apt-get install faketime)" ;;
        esac
    done
}

python=$(find_python)
uv=$(find_uv)
pip=""
[ -n "$uv" ] || pip=$(find_pip "$python")
wanted=""
if may_install; then wanted=$(missing_packages); fi

total=3
[ -z "$pip" ] || total=$((total + 1))
# shellcheck disable=SC2086 # one word for each package
[ -z "$wanted" ] || {
    set -- $wanted
    total=$((total + $# + 1))
    install_packages "$@"
}
say_skipped

if [ -n "$pip" ]; then
    begin "uv $(uv_version) -> .tools, about 40 MB: the installer, used only in this folder"
    must install_uv "$pip"
    uv=$PINNED_UV
    end
fi
prepare_uv

if [ -x .venv/bin/python ] && good_python .venv/bin/python; then
    begin "$(.venv/bin/python --version) in .venv is kept"
else
    begin "$("$python" --version) -> .venv"
    must "$uv" venv --quiet --clear --python "$python" .venv
fi
rm -f .venv/.ready-run
[ "$kind" = run ] || rm -f .venv/.ready-dev
end

packages=$(grep -c '^[a-z0-9].*==' "$lock")
if [ "$kind" = dev ]; then
    begin "$packages packages from $lock, and their bytecode"
    must "$uv" pip sync --compile-bytecode --python .venv/bin/python --require-hashes "$lock"
else
    # Compiling all bytecode takes five times as long as the rest. Python compiles what the demo imports.
    begin "$packages packages from $lock"
    must "$uv" pip install --python .venv/bin/python --require-hashes --requirement "$lock"
fi
end

begin "firelite and fireswarm themselves"
set -- --editable packages/firelite --editable .
[ "$kind" = run ] || set -- "$@" --editable packages/fireswarm-postgres # its psycopg is locked for development only
must "$uv" pip install --python .venv/bin/python --no-deps --no-build-isolation "$@"
end
touch .venv/.ready-run
[ "$kind" = run ] || touch .venv/.ready-dev
say "ready: .venv has $(du -sm .venv | cut -f 1) MB"
