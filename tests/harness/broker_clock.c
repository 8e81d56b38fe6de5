/* The wall clock of a JVM, some seconds off: under libfaketime 0.9.10 a broker does not get past its start.

   How many seconds is a number in the file BROKER_CLOCK, as the machine writes it; it may change at any time. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

static volatile const int64_t *off;
static int (*real)(clockid_t, struct timespec *);

__attribute__((constructor)) static void open_file(void) {
    real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int file = open(getenv("BROKER_CLOCK"), O_RDONLY);
    void *page = mmap(NULL, sizeof *off, PROT_READ, MAP_SHARED, file, 0);
    if (file < 0 || page == MAP_FAILED) abort();
    off = page;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    if (!real) open_file();
    int failed = real(clock, time);
    if (!failed && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) time->tv_sec += *off;
    return failed;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return 0;
}
