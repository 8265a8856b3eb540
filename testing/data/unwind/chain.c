/* A call chain of known shape that ends in a jump to address zero; no libc, so that the executable stays small. */
static volatile long sink;
typedef long (*step)(long);
static volatile step nowhere;

__attribute__((noinline)) static long innermost(long n) {
    long local[4] = {n, n + 1, n + 2, n + 3};
    sink = local[n & 3];
    return nowhere(n) + sink;
}
__attribute__((noinline)) static long middle(long n) {
    long local[9];
    for (int i = 0; i < 9; i++) local[i] = n * i;
    sink = local[n % 9];
    return innermost(local[3]) + 1;
}
__attribute__((noinline)) static long recursive(long n) {
    long kept = n * 3;
    sink = kept;
    return (n == 0 ? middle(kept + 7) : recursive(n - 1)) + kept;
}
__attribute__((noinline)) static long outermost(long n) { return recursive(n) * 2; }

__attribute__((force_align_arg_pointer, noreturn)) void _start(void) {
    sink = outermost(2);
    for (;;) {}
}
