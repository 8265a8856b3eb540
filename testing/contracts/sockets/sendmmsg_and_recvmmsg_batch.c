/* sendmmsg(2), recvmmsg(2): several messages per call, the count done is returned, lengths per message. */
#include "../contract.h"
#include <sys/socket.h>

int main(void)
{
    int pair[2];
    need(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
    struct iovec out[3] = { { "one", 3 }, { "three", 5 }, { "", 0 } };
    struct mmsghdr batch[4] = { 0 };
    for (int i = 0; i < 3; i++)
        batch[i].msg_hdr.msg_iov = &out[i], batch[i].msg_hdr.msg_iovlen = 1;
    RESULT(sendmmsg(pair[0], batch, 3, 0));
    say("lengths %u %u %u", batch[0].msg_len, batch[1].msg_len, batch[2].msg_len);
    char text[4][8] = { 0 };
    struct iovec in[4];
    struct mmsghdr got[4] = { 0 };
    for (int i = 0; i < 4; i++) {
        in[i] = (struct iovec){ text[i], 7 };
        got[i].msg_hdr.msg_iov = &in[i], got[i].msg_hdr.msg_iovlen = 1;
    }
    RESULT(recvmmsg(pair[1], got, 4, MSG_DONTWAIT, NULL));
    say("lengths %u %u %u texts \"%s\" \"%s\"", got[0].msg_len, got[1].msg_len, got[2].msg_len, text[0], text[1]);
    RESULT(recvmmsg(pair[1], got, 4, MSG_DONTWAIT, NULL));
    batch[1].msg_hdr.msg_iov = BAD_POINTER;
    RESULT(sendmmsg(pair[0], batch, 3, 0));
    RESULT(sendmmsg(pair[0], batch + 1, 1, 0));
    return 0;
}
