/* open(2): with O_APPEND each write goes to the end in one step, so two writers lose nothing. */
#include "../contract.h"

static int writer(void *letter)
{
    int fd = open("log", O_WRONLY | O_APPEND);
    char line[16];
    memset(line, *(char *)letter, sizeof line);
    for (int i = 0; i < 200; i++)
        if (write(fd, line, sizeof line) != sizeof line)
            return 1;
    return 0;
}

int main(void)
{
    scratch();
    put_file("log", "", 0600);
    char letters[2] = { 'a', 'b' };
    pid_t one = spawn(writer, &letters[0]), two = spawn(writer, &letters[1]);
    show_status("one", reap(one));
    show_status("two", reap(two));
    static char text[8192];
    int length = get_file("log", text, sizeof text), whole = 0, a = 0;
    for (int at = 0; at + 16 <= length; at += 16) {
        int same = 1;
        for (int i = 1; i < 16; i++)
            same &= text[at + i] == text[at];
        whole += same;
        a += text[at] == 'a';
    }
    say("bytes %d whole lines %d of the first writer %d", length, whole, a);
    return 0;
}
