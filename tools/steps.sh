# shellcheck shell=bash
# Shell functions that quickstart and check share. Sourced with `root` set to the checkout; writes to standard error only.

: "${root:?}"

say() {
    printf '%s\n' "$*" >&2
}

# step NAME COMMAND...: runs the command with its output in a log; one line when it is done, the log's end if it failed.
step() {
    local name=$1 began=$SECONDS file log
    shift
    file=${name//[^a-zA-Z0-9]/_}
    log=$root/build/logs/${file:0:60}.log
    mkdir -p "$root/build/logs"
    if "$@" >"$log" 2>&1; then
        say "$name: ok ($((SECONDS - began)) s)"
        return 0
    fi
    say "$name: FAILED ($((SECONDS - began)) s), the whole log is $log"
    tail -n 30 "$log" >&2
    return 1
}

# The packages of a build: compiler and tools, then the libraries that are used where they are there.
# shellcheck disable=SC2034
build_packages="gcc libc6-dev make cmake pkg-config
    libjansson-dev libyajl-dev libssl-dev libzstd-dev libedit-dev libutf8proc-dev
    libturbojpeg0-dev libpng-dev libwebp-dev libsndfile1-dev libsoxr-dev"

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

apt_install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 update &&
        as_root env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 install -y --no-install-recommends "$@"
}

# need_packages PACKAGE...: installs those that are missing; does nothing on systems without Debian's package manager.
need_packages() {
    local package missing=()
    command -v dpkg-query >/dev/null && command -v apt-get >/dev/null || return 0
    for package in "$@"; do
        [ "$(dpkg-query -W -f='${db:Status-Status}' "$package" 2>/dev/null)" = installed ] || missing+=("$package")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ] && ! command -v sudo >/dev/null; then
        say "missing packages, and neither root nor sudo to install them: ${missing[*]}"
        return 1
    fi
    step "install ${missing[*]}" apt_install "${missing[@]}"
}

# build_into FOLDER CMAKE_OPTION...: configures and builds; what is up to date is left alone.
build_into() {
    local folder=$1
    shift
    cmake -S "$root" -B "$folder" "$@" && cmake --build "$folder" --parallel "$(nproc)"
}
