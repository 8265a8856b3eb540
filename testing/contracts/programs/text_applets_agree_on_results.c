/* POSIX utilities: grep, sed, awk, cut, uniq, tail, od and expr give the same answers over pipes and files. */
#include "../contract.h"

int main(void)
{
    scratch();
    const char *script =
        "seq 1 100 > n; grep -c 7 n; grep -n '^9.$' n | head -n 2; sed -n '10,12p' n; sed 's/1/x/g;5q' n | tail -n 1\n"
        "awk '$1 % 2 { odd += $1 } END { print odd }' n\n"
        "cut -c1 n | uniq -c | awk '{ print $1 }' | tr '\\n' ' '; echo\n"
        "tail -n 2 n; tail -c 4 n; printf 'AB\\0C' | od -An -tx1; expr 6 '*' 7; echo 'a,b,c' | cut -d, -f2\n"
        "printf 'x y\\nz w\\n' | while read p q; do echo \"$q$p\"; done\n"
        "echo abc | rev; dd if=/dev/zero bs=1000 count=5 2>/dev/null | wc -c\n"
        "echo hello | md5sum | cut -c1-8\n"
        "printf '3\\n1\\n2\\n' | sort -n | paste -sd+ ; test 5 -gt 3 && echo greater\n";
    run_script(script);
    return 0;
}
