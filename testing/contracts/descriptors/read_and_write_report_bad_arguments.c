/* read(2), write(2): wrong access mode and closed descriptors are EBADF, bad buffers EFAULT, directories EISDIR. */
#include "../contract.h"

int main(void)
{
    scratch();
    put_file("file", "text", 0600);
    char byte;
    int in = open("file", O_RDONLY), out = open("file", O_WRONLY), directory = open(".", O_RDONLY);
    RESULT(read(out, &byte, 1));
    RESULT(write(in, &byte, 1));
    RESULT(read(in, BAD_POINTER, 1));
    RESULT(write(out, BAD_POINTER, 1));
    RESULT(read(in, BAD_POINTER, 0));
    RESULT(write(out, BAD_POINTER, 0));
    RESULT(read(directory, &byte, 1));
    RESULT(write(directory, &byte, 1));
    RESULT(read(-1, &byte, 1));
    RESULT(write(500, &byte, 1));
    RESULT(close(500));
    close(in);
    RESULT(close(in));
    RESULT(read(out, &byte, 0));
    int path_only = open("file", O_PATH);
    RESULT(read(path_only, &byte, 1));
    RESULT(write(path_only, &byte, 1));
    return 0;
}
