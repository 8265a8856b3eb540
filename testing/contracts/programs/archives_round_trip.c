/* tar(1), gzip(1), cpio(1): packing and unpacking a tree keeps contents, modes and links. */
#include "../contract.h"

int main(void)
{
    scratch();
    const char *script =
        "set -e; mkdir -p tree/sub; seq 1 5000 > tree/numbers; echo x > tree/sub/x\n"
        "ln -s numbers tree/soft; chmod 751 tree/sub\n"
        "md5sum < tree/numbers; tar cf t.tar tree; mkdir out; tar xf t.tar -C out; md5sum < out/tree/numbers\n"
        "stat -c %a out/tree/sub; readlink out/tree/soft\n"
        "gzip -c t.tar > t.gz; gunzip -c t.gz | cmp - t.tar && echo same\n"
        "(cd tree && find . | sort | cpio -o -H newc 2>/dev/null) > t.cpio; mkdir out2\n"
        "(cd out2 && cpio -id 2>/dev/null < ../t.cpio)\n"
        "cmp tree/numbers out2/numbers && echo same again; head -c 6 t.cpio; echo\n";
    run_script(script);
    return 0;
}
