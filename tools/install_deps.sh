#!/bin/sh
# install_deps.sh run|test|check|fuzz: install what that make target needs and this machine lacks, where there is apt-get.
# Says nothing when all is there.  Fails when a tool without which nothing works cannot be had; a tool that only a part
# of the work needs is named in a sentence, and that part is skipped later.
mode=${1:?usage: install_deps.sh run|test|check|fuzz}
cc=${CC:-cc}
python=${PYTHON:-python3}

have() { command -v "$1" >/dev/null 2>&1; }
compiles() { echo "#include <$2>" | "$1" -E - >/dev/null 2>&1; }
has_fuzzer() {
    echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' | clang -fsanitize=fuzzer -x c - -o /dev/null >/dev/null 2>&1
}

# Set the two lists of Debian packages that are missing.
look() {
    needed='' wanted=''
    have "$cc" || have gcc || needed="$needed gcc"
    have make || needed="$needed make"
    compiles "$cc" pthread.h || compiles gcc pthread.h || needed="$needed libc6-dev"
    compiles "$cc" jansson.h || compiles gcc jansson.h || needed="$needed libjansson-dev"
    compiles "$cc" utf8proc.h || compiles gcc utf8proc.h || needed="$needed libutf8proc-dev"
    compiles "$cc" histedit.h || compiles gcc histedit.h || needed="$needed libedit-dev"
    case $mode in
    test)
        compiles "$cc" cmocka.h || compiles gcc cmocka.h || needed="$needed libcmocka-dev"
        have pkg-config || wanted="$wanted pkg-config"
        if [ "$(uname -m)" != aarch64 ] && [ "${AARCH64:-}" != no ]; then
            have "${EMULATOR:-qemu-aarch64}" || wanted="$wanted qemu-user"
            have "${CROSS_CC:-aarch64-linux-gnu-gcc}" || wanted="$wanted gcc-aarch64-linux-gnu"
            compiles "${CROSS_CC:-aarch64-linux-gnu-gcc}" pthread.h || wanted="$wanted libc6-dev-arm64-cross"
        fi
        if [ "${CI:-}" = true ]; then
            have "$python" || wanted="$wanted python3"
            "$python" -m pip --version >/dev/null 2>&1 || wanted="$wanted python3-pip"
        fi
        ;;
    check)
        have clang || wanted="$wanted clang"
        have clang-format-14 || wanted="$wanted clang-format-14"
        have clang-tidy-14 || wanted="$wanted clang-tidy-14"
        have cppcheck || wanted="$wanted cppcheck"
        have shellcheck || wanted="$wanted shellcheck"
        ;;
    fuzz)
        have clang || needed="$needed clang"
        has_fuzzer || needed="$needed libclang-rt-14-dev"
        ;;
    esac
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif have sudo; then
        sudo "$@"
    else
        return 1
    fi
}

install() { as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@" </dev/null; }

# The Python packages that tests/diff compares with.  A Python that the system manages is left as it is, but for CI.
install_packages() {
    "$python" -c 'import tokenizers, jinja2' >/dev/null 2>&1 && return
    "$python" -m pip --version >/dev/null 2>&1 || return
    echo "installing tokenizers jinja2 with pip"
    set -- "$python" -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 20
    "$@" tokenizers jinja2 >"$log" 2>&1 && return
    [ "${CI:-}" = true ] && "$@" --break-system-packages tokenizers jinja2 >"$log" 2>&1 && return
    grep -m 1 -i '^error' "$log" >&2
    echo "Without the Python packages tokenizers and jinja2 the comparisons with them are skipped." >&2
}

log=$(mktemp)
trap 'rm -f "$log"' EXIT
look
if [ -n "$needed$wanted" ] && have apt-get; then
    echo "installing$needed$wanted"
    # One at a time when all at once fails: a name that this release does not have must not keep the others out.
    # The lists are meant to be split.
    # shellcheck disable=SC2086
    {
        as_root apt-get update -q && install $needed $wanted ||
            for package in $needed $wanted; do install "$package"; done
    } >"$log" 2>&1 || tail -n 5 "$log"
    hash -r
    look
fi
[ "$mode" != test ] || install_packages
[ -z "$wanted" ] || echo "Without$wanted a part of \`make $mode\` is skipped; install it to have all of it." >&2
[ -z "$needed" ] && exit 0
echo "\`make $mode\` needs$needed, which could not be installed here; please install it." >&2
exit 1
