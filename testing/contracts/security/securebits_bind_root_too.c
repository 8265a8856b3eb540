/*
 * capabilities(7), "The securebits flags": NOROOT takes root's capabilities at an execution, NO_SETUID_FIXUP leaves
 * them at a change of ids, KEEP_CAPS is PR_SET_KEEPCAPS; locks cannot be opened, and CAP_SETPCAP is needed.
 */
#include "security.h"
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <linux/securebits.h>

static void show_caps(const char *when)
{
    char text[4096], *at;
    need(get_file("/proc/self/status", text, sizeof text) > 0);
    say("%s: securebits %d", when, prctl(PR_GET_SECUREBITS, 0, 0, 0, 0));
    for (const char **name = (const char *[]){ "CapPrm", "CapEff", NULL }; *name; name++)
        if ((at = strstr(text, *name)))
            say("  %.*s", (int)strcspn(at, "\n"), at);
}

static long set(unsigned long bits) { return prctl(PR_SET_SECUREBITS, bits, 0, 0, 0); }

static int no_root(void *unused)
{
    (void)unused;
    RESULT(set(SECBIT_NOROOT));
    show_caps("before");
    execl("/proc/self/exe", "self", "show", NULL);
    return 1;
}

static int no_fixup(void *unused)
{
    (void)unused;
    RESULT(set(SECBIT_NO_SETUID_FIXUP));
    need(setfsuid(65441) == 0);
    show_caps("another file system user");
    need(setresuid(65441, 65441, 65441) == 0);
    show_caps("another user");
    execl("/proc/self/exe", "self", "show", NULL);
    return 1;
}

static int keep(void *unused)
{
    (void)unused;
    RESULT(set(SECBIT_KEEP_CAPS));
    RESULT(prctl(PR_GET_KEEPCAPS, 0, 0, 0, 0));
    RESULT(prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0));
    show_caps("keeping nothing");
    RESULT(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
    need(setresuid(65441, 65441, 65441) == 0);
    show_caps("kept");
    execl("/proc/self/exe", "self", "show", NULL);
    return 1;
}

static int locks(void *unused)
{
    (void)unused;
    RESULT(set(1 << 8));
    RESULT(set(1UL << 32));
    RESULT(set(SECBIT_KEEP_CAPS | SECBIT_KEEP_CAPS_LOCKED));
    RESULT(set(SECBIT_KEEP_CAPS));
    RESULT(set(SECBIT_KEEP_CAPS_LOCKED));
    RESULT(prctl(PR_SET_KEEPCAPS, 0, 0, 0, 0));
    RESULT(prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0));
    RESULT(set(SECBIT_KEEP_CAPS | SECBIT_KEEP_CAPS_LOCKED | SECBIT_NOROOT | SECBIT_NO_CAP_AMBIENT_RAISE));
    show_caps("locked");
    become_nobody();
    RESULT(set(SECBIT_KEEP_CAPS | SECBIT_KEEP_CAPS_LOCKED));
    return 0;
}

static int user(void *unused)
{
    (void)unused;
    become_nobody();
    RESULT(set(0));
    RESULT(set(SECBIT_NOROOT));
    show_caps("a user");
    return 0;
}

int main(int count, char **words)
{
    (void)words;
    if (count > 1) {
        show_caps("executed");
        return 0;
    }
    show_status("NOROOT", in_child(no_root, NULL));
    show_status("NO_SETUID_FIXUP", in_child(no_fixup, NULL));
    show_status("KEEP_CAPS", in_child(keep, NULL));
    show_status("locks", in_child(locks, NULL));
    show_status("user", in_child(user, NULL));
    return 0;
}
