#!/bin/sh
# Install below a temporary folder, then build and run examples/engine.c as an engine author would: with pkg-config,
# against the shared and against the static library.
build=${BUILD:-build}
cc=${CC:-cc}
passed=0 failed=0 skipped=0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

check() {
    name=$1
    shift
    if "$@" >"$dir/log" 2>&1; then
        passed=$((passed + 1))
    else
        echo "failed: $name: $*"
        cat "$dir/log"
        failed=$((failed + 1))
    fi
}

# The flags of the make that runs this test (its jobs, its variables) are not for this one.
unset MAKEFLAGS MAKELEVEL MFLAGS
check install make install BUILD="$build" CC="$cc" SAN="${SAN:-}" DEBUG="${DEBUG:-}" DESTDIR="$dir/root" PREFIX=/opt/gdn
prefix=$dir/root/opt/gdn
for file in include/gdn/delta.h include/gdn/status.h lib/libgdn.a lib/libgdn.so lib/libgdn.so.0 lib/pkgconfig/gdn.pc bin/gdn \
    share/gdn/demo/config.json; do
    check "$file" test -e "$prefix/$file"
done

export PKG_CONFIG_PATH="$prefix/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$dir/root"

# Flags are lists: they are meant to be split.
# shellcheck disable=SC2046,SC2086
build_shared() {
    "$cc" -std=c11 $SANFLAGS $(pkg-config --cflags gdn) examples/engine.c $(pkg-config --libs gdn) -o "$dir/shared"
}
# shellcheck disable=SC2046,SC2086
build_static() {
    "$cc" -std=c11 $SANFLAGS $(pkg-config --cflags gdn) examples/engine.c \
        -Wl,-Bstatic $(pkg-config --libs-only-L --libs-only-l gdn) -Wl,-Bdynamic $(pkg-config --static --libs-only-other gdn) \
        -lm -o "$dir/static"
}
uses_shared() { LD_LIBRARY_PATH="$prefix/lib" ldd "$1" | grep -q libgdn.so.0; }
uses_no_shared() { ! uses_shared "$1"; }
if command -v pkg-config >/dev/null 2>&1; then
    check "engine.c with the shared library" build_shared
    check "it is linked to the shared library" uses_shared "$dir/shared"
    check "it runs" env LD_LIBRARY_PATH="$prefix/lib" "$dir/shared"
    check "engine.c with the static library" build_static
    check "it has the library inside" uses_no_shared "$dir/static"
    check "it runs" "$dir/static"
else
    echo "skip: pkg-config is not installed"
    skipped=$((skipped + 6))
fi
echo "install: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
