/* unlink(2): in a sticky directory only the owner of the file or of the directory may remove or rename a name. */
#include "../contract.h"

static int as_user(void *unused)
{
    (void)unused;
    need(setgid(1000) == 0 && setuid(1000) == 0);
    put_file("sticky/mine", "", 0600);
    RESULT(unlink("sticky/root"));
    RESULT(rename("sticky/root", "sticky/stolen"));
    RESULT(rename("sticky/mine", "sticky/root"));
    RESULT(unlink("sticky/mine"));
    RESULT(unlink("plain/root"));
    return 0;
}

int main(void)
{
    scratch();
    need(mkdir("sticky", 0777) == 0 && chmod("sticky", 01777) == 0);
    need(mkdir("plain", 0777) == 0 && chmod("plain", 0777) == 0);
    put_file("sticky/root", "", 0666);
    put_file("plain/root", "", 0600);
    show_status("user", in_child(as_user, NULL));
    return 0;
}
