/* rename(2): replaces files by files and empty directories by directories, and refuses every other pairing. */
#include "../contract.h"

int main(void)
{
    scratch();
    char text[8];
    put_file("one", "1", 0600);
    put_file("two", "2", 0600);
    need(mkdir("empty", 0755) == 0 && mkdir("full", 0755) == 0 && mkdir("full/sub", 0755) == 0);
    RESULT(rename("one", "two"));
    get_file("two", text, sizeof text);
    show_text("two", text);
    RESULT(access("one", F_OK));
    RESULT(rename("absent", "two"));
    RESULT(rename("two", "empty"));
    RESULT(rename("empty", "two"));
    RESULT(rename("empty", "full"));
    RESULT(rename("full", "full/sub/inside"));
    RESULT(rename("full", "full"));
    RESULT(rename("full", "empty"));
    RESULT(access("empty/sub", F_OK));
    RESULT(rename("empty/sub", "moved"));
    RESULT(rename("two", "absent/x"));
    RESULT(rename("two", "two/x"));
    RESULT(rename(".", "dot"));
    RESULT(rename("two", ".."));
    need(link("two", "three") == 0);
    RESULT(rename("two", "three"));
    RESULT(access("two", F_OK));
    RESULT(rename("two", "/proc/two"));
    return 0;
}
