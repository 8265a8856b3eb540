#!/bin/sh
# Makes the fixture of the tests of typed inspection: values.rs.in as a program without libraries, and what gdb sees of it in `stop`.
set -eu
cd "$(dirname "$0")"
rustc --edition 2021 --crate-name values -g -C opt-level=0 -C panic=abort -C relocation-model=static -C force-frame-pointers=yes \
    -C overflow-checks=no --remap-path-prefix "$PWD=." -C linker=gcc -C link-args="-nostdlib -nostartfiles -static -no-pie -Wl,--build-id -Wl,--gc-sections" \
    -o values.elf values.rs.in
gdb -q -batch -nx -ex 'set debuginfod enabled off' -ex 'break values.rs.in:88' -ex run -ex 'printf "backtrace\n"' -ex bt \
    -ex 'printf "registers\n"' -ex 'info registers rip rsp rbp rbx r12 r13 r14 r15' \
    -ex 'printf "stack\n"' -ex 'x/48gx $rsp' -ex 'printf "locals\n"' -ex 'frame 1' -ex 'info args' -ex 'info locals' \
    values.elf 2>/dev/null | sed -n '/^backtrace$/,$p' > values.gdb
