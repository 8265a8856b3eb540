/*
 * Fills structures that lead to others: vectors, messages with descriptors in them, argument lists, clone's arguments.
 */
#include "shapes.h"

#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

static void vector(struct step *step, unsigned long *words, int count)
{
    say(step, "{");
    for (int i = 0; i < count; i++) {
        say(step, "%s(", i ? ", " : "");
        words[2 * i] = choose_address(step, 256);
        say(step, ", ");
        words[2 * i + 1] = (unsigned long)choose_size(step);
        say(step, ")");
    }
    say(step, "}");
}

void *fill_vector(struct step *step, size_t *size)
{
    *size = 4 * 16;
    unsigned long *words = memset(scratch(step, *size), 0, *size);
    vector(step, words, 1 + (int)below(step, 4));
    return words;
}

/* Rights over descriptors, credentials that are true or not, or nonsense. */
static void control(struct step *step, struct msghdr *message)
{
    size_t room = 256;
    struct cmsghdr *head = memset(scratch(step, room), 0, room);
    message->msg_control = head;
    message->msg_controllen = room;
    head->cmsg_level = SOL_SOCKET;
    int count = 1 + (int)below(step, 4);
    if (chance(step, 75)) {
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int) * (size_t)count);
        int *fds = (int *)CMSG_DATA(head);
        say(step, ", rights");
        for (int i = 0; i < count; i++) {
            say(step, " ");
            fds[i] = (int)choose_fd(step);
        }
        message->msg_controllen = CMSG_SPACE(sizeof(int) * (size_t)count);
    } else if (chance(step, 60)) {
        head->cmsg_type = SCM_CREDENTIALS;
        head->cmsg_len = CMSG_LEN(sizeof(struct ucred));
        struct ucred *who = (struct ucred *)CMSG_DATA(head);
        who->pid = chance(step, 60) ? (int)own_pid() : program.pids[below(step, 4)];
        who->uid = chance(step, 60) ? WORKER_ID : 0;
        who->gid = WORKER_ID;
        message->msg_controllen = CMSG_SPACE(sizeof(struct ucred));
        say(step, ", credentials");
    } else {
        head->cmsg_type = (int)choose_number(step);
        head->cmsg_len = (size_t)choose_size(step);
        say(step, ", nonsense");
    }
    if (chance(step, 8))
        message->msg_controllen = (size_t)choose_size(step);
}

void *fill_message(struct step *step, size_t *size)
{
    *size = sizeof(struct msghdr);
    struct msghdr *message = memset(scratch(step, *size), 0, *size);
    size_t length;
    say(step, "{");
    message->msg_iov = fill_vector(step, &length);
    message->msg_iovlen = chance(step, 90) ? 1 + below(step, 2) : (size_t)choose_size(step);
    if (chance(step, 30)) {
        say(step, ", ");
        message->msg_name = fill_address(step, &length);
        message->msg_namelen = (socklen_t)length;
    }
    if (chance(step, 60))
        control(step, message);
    say(step, "}");
    return message;
}

void *fill_messages(struct step *step, size_t *size)
{
    enum { EACH = sizeof(struct msghdr) + 8 };
    *size = 3 * EACH;
    uint8_t *at = memset(scratch(step, *size), 0, *size);
    for (int i = 0; i < 3; i++) {
        size_t length;
        memcpy(at + i * EACH, fill_message(step, &length), sizeof(struct msghdr));
    }
    return at;
}

void *fill_address(struct step *step, size_t *size)
{
    uint8_t *at = memset(scratch(step, 128), 0, 128);
    unsigned which = below(step, 10);
    if (which < 7) {
        static const char *const names[] = { "sock", "a", "\0f", "\0g", "", "d/s", "/tmp/fuzz/sock", "sock2" };
        static const uint8_t lengths[] = { 5, 2, 2, 2, 0, 4, 15, 6 };
        struct sockaddr_un *name = (struct sockaddr_un *)at;
        unsigned one = below(step, 8);
        name->sun_family = AF_UNIX;
        memcpy(name->sun_path, names[one], lengths[one]);
        if (one == 2)
            memcpy(name->sun_path + 2, &program.number, sizeof program.number);
        *size = one == 2 ? 12 : 2 + lengths[one];
        say(step, "unix %u", one);
    } else {
        struct sockaddr_in *name = (struct sockaddr_in *)at;
        name->sin_family = AF_INET;
        name->sin_port = htons((uint16_t)(chance(step, 20) ? 80 : 9000 + below(step, 4)));
        name->sin_addr.s_addr = htonl(chance(step, 80) ? INADDR_LOOPBACK : (uint32_t)any(step));
        *size = sizeof *name;
        say(step, "inet");
    }
    return at;
}

/* A list of strings, a few times without an end or with something else in it. */
void *fill_words(struct step *step, size_t *size)
{
    static char *const list[][4] = {
        { "fuzz", "tail", NULL, NULL }, { "fuzz", "tail", "x", NULL }, { NULL, NULL, NULL, NULL }, { "true", NULL,
        NULL, NULL },
        { "A=b", "PATH=/bin", NULL, NULL }, { "sh", "-c", ":", NULL },
    };
    *size = sizeof list[0];
    unsigned one = below(step, 6);
    char **words = memcpy(scratch(step, *size), list[chance(step, 60) ? 0 : one], *size);
    if (chance(step, 5))
        words[below(step, 4)] = (char *)choose_address(step, 8);
    return words;
}

void *fill_clone(struct step *step, size_t *size)
{
    *size = 88;
    uint64_t *words = memset(scratch(step, *size), 0, *size);
    int set = calls[call_named("unshare")].arguments[0].flags;
    words[0] = chance(step, 40) ? 0 : (uint64_t)choose_flags(step, set, false);
    words[1] = choose_address(step, 4);
    words[2] = choose_address(step, 4);
    words[3] = choose_address(step, 4);
    words[4] = chance(step, 80) ? SIGCHLD : (uint64_t)choose_signal(step);
    if (words[0] & CLONE_VM) {
        words[5] = program.areas[0].at;
        words[6] = program.areas[0].length;
    }
    words[7] = words[0] & CLONE_SETTLS ? choose_address(step, 8) : 0;
    words[8] = chance(step, 95) ? 0 : choose_address(step, 8);
    words[9] = chance(step, 95) ? 0 : below(step, 4);
    words[10] = 0;
    say(step, "{clone %#lx}", (unsigned long)words[0]);
    return words;
}
