#!/bin/sh
# Makes the fixtures of the unwinder's tests: two builds of chain.c and, for each, what gdb saw when it died.
set -eu
cd "$(dirname "$0")"
build() {
    gcc -O2 -g1 -static -nostdlib -ffreestanding -fno-pie -no-pie -fno-stack-protector -fcf-protection=none \
        -fno-optimize-sibling-calls -fdebug-prefix-map="$PWD"=. -Wl,--build-id -Wl,-z,max-page-size=4096 "$@"
}
build -fomit-frame-pointer -fasynchronous-unwind-tables -o chain-cfi.elf chain.c
build -fno-omit-frame-pointer -fno-asynchronous-unwind-tables -fno-unwind-tables -o chain-fp.elf chain.c
for kind in cfi fp; do
    gdb -q -batch -nx -ex 'set disable-randomization on' -ex run \
        -ex 'printf "backtrace\n"' -ex bt \
        -ex 'printf "registers\n"' -ex 'info registers rip rsp rbp rbx r12 r13 r14 r15' \
        -ex 'printf "stack\n"' -ex 'x/128gx $rsp' "chain-$kind.elf" 2>/dev/null | sed -n '/^backtrace$/,$p' > "chain-$kind.gdb" || true
done
