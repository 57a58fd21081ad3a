#!/bin/sh
# install_deps.sh run|test|check|fuzz: install what that make target needs and this machine lacks, where there is apt-get.
# Says nothing when all is there.  Fails when a tool without which nothing works cannot be had; a tool that only a part
# of the work needs is named in a sentence, and that part is skipped later.
mode=${1:?usage: install_deps.sh run|test|check|fuzz}
cc=${CC:-cc}

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
    case $mode in
    test)
        compiles "$cc" cmocka.h || compiles gcc cmocka.h || needed="$needed libcmocka-dev"
        have pkg-config || wanted="$wanted pkg-config"
        if [ "$(uname -m)" != aarch64 ] && [ "${AARCH64:-}" != no ]; then
            have "${EMULATOR:-qemu-aarch64}" || wanted="$wanted qemu-user"
            have "${CROSS_CC:-aarch64-linux-gnu-gcc}" || wanted="$wanted gcc-aarch64-linux-gnu"
            compiles "${CROSS_CC:-aarch64-linux-gnu-gcc}" pthread.h || wanted="$wanted libc6-dev-arm64-cross"
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

look
[ -n "$needed$wanted" ] || exit 0

if have apt-get; then
    echo "installing$needed$wanted"
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
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
[ -z "$wanted" ] || echo "Without$wanted a part of \`make $mode\` is skipped; install it to have all of it." >&2
[ -z "$needed" ] && exit 0
echo "\`make $mode\` needs$needed, which could not be installed here; please install it." >&2
exit 1
