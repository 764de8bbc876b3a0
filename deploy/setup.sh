#!/usr/bin/env bash
# Set up the virtual environment of this clone: create it, or bring it up to date with the locked requirements.
#
# Quick when there is nothing to do: a stamp in the environment holds the digest of what it was made from. Two runs at
# once are fine: the second waits. Everything is said on standard error; standard output belongs to the caller.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly venv=.venv
readonly python="${PYTHON:-python3}"
readonly sources=(requirements/build.txt requirements/dev.txt pyproject.toml)

fail() { echo "error: $*" >&2; exit 1; }
say() { echo "setup: $*" >&2; }

digest() { { cat "${sources[@]}"; "$python" -V; pwd; } | sha256sum | cut -d' ' -f1; }

check_python() {
    command -v "$python" >/dev/null ||
        fail "$python is missing: install the Debian package python3 (3.11 or newer) and run this again"
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
        fail "$("$python" -V) is too old: put Python 3.11 or newer on the path, or name it with PYTHON=…"
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        [[ $(id -u) == 0 ]] && command -v apt-get >/dev/null ||
            fail "Python's venv module is missing: install the Debian package python3-venv and run this again"
        say "Python's venv module is missing: installing the Debian package python3-venv …"
        { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install --yes python3-venv; } >&2 ||
            fail "the Debian package python3-venv could not be installed"
    fi
}

install_all() {
    say "creating the virtual environment in $venv …"
    "$python" -m venv "$venv" >&2
    local pip=("$venv/bin/python" -m pip --disable-pip-version-check --no-input)
    say "installing the locked requirements (PySpark is 400 MB: minutes the first time) …"
    "${pip[@]}" install --quiet --require-hashes -r requirements/build.txt >&2
    # Without build isolation: what builds PySpark is locked as well, and is installed by now.
    "${pip[@]}" install --progress-bar off --require-hashes --no-build-isolation -r requirements/dev.txt |
        { grep -E --line-buffered '^(Collecting|Building|Installing)' || true; } | cut -c1-160 >&2
    say "installing twinstream itself …"
    "${pip[@]}" install --quiet --no-deps --no-build-isolation --editable . >&2
}

check_python
mkdir -p .cache
exec 9>.cache/setup.lock
flock 9
if [[ "$(cat "$venv/.ready" 2>/dev/null)" != "$(digest)" ]]; then
    install_all
    digest >"$venv/.ready"
    say "the virtual environment is ready"
fi
