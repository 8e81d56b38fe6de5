/* Two calls that libfaketime 0.9.10 gets wrong or leaves out; to be loaded before it.

   clock_nanosleep: Python sleeps until a moment of CLOCK_MONOTONIC, which libfaketime refuses with EINVAL.
   cnd_timedwait: librdkafka waits until a moment of the wall clock that it has read through libfaketime. The kernel
   knows the true one only, so the wait would last as long as the clock is ahead. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <sys/syscall.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define NANOSECONDS 1000000000L

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *until, struct timespec *left) {
    return syscall(SYS_clock_nanosleep, clock, flags, until, left) == 0 ? 0 : errno;
}

int cnd_timedwait(cnd_t *restrict condition, mtx_t *restrict mutex, const struct timespec *restrict until) {
    static int (*real)(cnd_t *, mtx_t *, const struct timespec *);
    if (!real) real = (int (*)(cnd_t *, mtx_t *, const struct timespec *))dlsym(RTLD_NEXT, "cnd_timedwait");
    struct timespec told, truth;
    clock_gettime(CLOCK_REALTIME, &told);
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &truth);
    long nanoseconds = truth.tv_nsec + until->tv_nsec - told.tv_nsec;
    time_t seconds = truth.tv_sec + until->tv_sec - told.tv_sec;
    while (nanoseconds < 0) nanoseconds += NANOSECONDS, seconds--;
    while (nanoseconds >= NANOSECONDS) nanoseconds -= NANOSECONDS, seconds++;
    struct timespec then = {.tv_sec = seconds, .tv_nsec = nanoseconds};
    return real(condition, mutex, &then);
}
