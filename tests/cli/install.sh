#!/bin/sh
# Install below a temporary folder, then build and run examples/engine.c and examples/generate.c as an engine author would: with
# pkg-config, against the shared and against the static libraries.
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
for file in include/gdn/delta.h include/gdn/gdn.h include/gdn/status.h lib/libgdn.a lib/libgdn.so lib/libgdn.so.0 \
    lib/libgdn-engine.a lib/libgdn-engine.so lib/libgdn-engine.so.0 lib/pkgconfig/gdn.pc lib/pkgconfig/gdn-engine.pc bin/gdn \
    share/gdn/demo/config.json; do
    check "$file" test -e "$prefix/$file"
done

export PKG_CONFIG_PATH="$prefix/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$dir/root"

# build_shared EXAMPLE PACKAGE; flags are lists: they are meant to be split.
# shellcheck disable=SC2046,SC2086
build_shared() {
    "$cc" -std=c11 $SANFLAGS $(pkg-config --cflags "$2") "examples/$1.c" $(pkg-config --libs "$2") -o "$dir/$1-shared"
}
# build_static EXAMPLE PACKAGE LIBRARY...: what lies in the installation is linked statically, what it needs of others is not.
# shellcheck disable=SC2046,SC2086
build_static() {
    "$cc" -std=c11 $SANFLAGS $(pkg-config --cflags "$2") "examples/$1.c" -Wl,-Bstatic $(pkg-config --libs "$2") -Wl,-Bdynamic \
        $(pkg-config --static --libs "$2" | tr ' ' '\n' | grep -v -e '-lgdn') -o "$dir/$1-static"
}
uses_shared() { LD_LIBRARY_PATH="$prefix/lib" ldd "$1" | grep -q "$2"; }
uses_no_shared() { ! uses_shared "$1" libgdn; }
answers() { # answers PROGRAM: the question of the README, as `gdn run` answers it
    answer=$(LD_LIBRARY_PATH="$prefix/lib" "$1" "$prefix/share/gdn/demo" 'What is 12 + 30?') && [ "$answer" = '12 + 30 = 42' ]
}
if command -v pkg-config >/dev/null 2>&1; then
    check "engine.c with the shared library" build_shared engine gdn
    check "it is linked to the shared library" uses_shared "$dir/engine-shared" libgdn.so.0
    check "it runs" env LD_LIBRARY_PATH="$prefix/lib" "$dir/engine-shared"
    check "engine.c with the static library" build_static engine gdn
    check "it has the library inside" uses_no_shared "$dir/engine-static"
    check "it runs" "$dir/engine-static"
    check "generate.c with the shared libraries" build_shared generate gdn-engine
    check "it is linked to the shared library" uses_shared "$dir/generate-shared" libgdn-engine.so.0
    check "it answers" answers "$dir/generate-shared"
    check "generate.c with the static libraries" build_static generate gdn-engine
    check "it has the libraries inside" uses_no_shared "$dir/generate-static"
    check "it answers" answers "$dir/generate-static"
else
    echo "skip: pkg-config is not installed"
    skipped=$((skipped + 12))
fi
echo "install: $passed passed, $failed failed, $skipped skipped"
[ "$failed" -eq 0 ]
