/* A time of day that somebody sets, for one process and all that it starts: preloaded (see clocks.py).

   By how much it is wrong stands in a file, as nanoseconds. What the C library says of the time of day is wrong by
   that, and a wait that ends at a time of day ends at the wrong one, also one that has begun: as on a machine whose
   clock is set. The monotonic clock, and all that waits on it, is left alone. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#define SECOND 1000000000LL
#define SLICE (SECOND / 50)
#define ON_THE_MONOTONIC_CLOCK 2 /* the bit of glibc for a condition that was made so */

static const volatile int64_t nothing = 0;
static const volatile int64_t *wrong_by = &nothing;
static int (*posix_wait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
static int (*c11_wait)(cnd_t *, mtx_t *, const struct timespec *);

__attribute__((constructor)) static void begin(void)
{
    const char *name = getenv("TIME_OF_DAY");
    int file = name ? open(name, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        void *found = mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
        if (found != MAP_FAILED)
            wrong_by = found;
        close(file);
    }
    posix_wait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    c11_wait = dlsym(RTLD_NEXT, "cnd_timedwait");
}

static int64_t nanoseconds(const struct timespec *at) { return at->tv_sec * SECOND + at->tv_nsec; }

static struct timespec moment(int64_t ns)
{
    struct timespec at = {ns / SECOND, ns % SECOND};
    return at;
}

static int64_t right_time(void)
{
    struct timespec at;
    syscall(SYS_clock_gettime, CLOCK_REALTIME, &at);
    return nanoseconds(&at);
}

static int64_t time_of_day(void) { return right_time() + *wrong_by; }

int clock_gettime(clockid_t clock, struct timespec *at)
{
    if (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)
        return syscall(SYS_clock_gettime, clock, at);
    *at = moment(time_of_day());
    return 0;
}

int gettimeofday(struct timeval *restrict at, void *restrict zone)
{
    (void)zone;
    int64_t ns = time_of_day();
    at->tv_sec = ns / SECOND;
    at->tv_usec = ns % SECOND / 1000;
    return 0;
}

time_t time(time_t *at)
{
    time_t now = time_of_day() / SECOND;
    if (at)
        *at = now;
    return now;
}

/* What is left of a wait, in slices: whether it is over is asked anew, since somebody may have set the clock. */
#define WAIT(timed_out, wait)                                                                                   \
    for (;;) {                                                                                                  \
        int64_t left = nanoseconds(until) - time_of_day();                                                      \
        struct timespec next = moment(right_time() + (left < 0 ? 0 : left < SLICE ? left : SLICE));             \
        int ended = wait;                                                                                       \
        if (ended != timed_out || left <= SLICE)                                                                \
            return ended;                                                                                       \
    }

int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
    if (cond->__data.__wrefs & ON_THE_MONOTONIC_CLOCK)
        return posix_wait(cond, mutex, until);
    WAIT(ETIMEDOUT, posix_wait(cond, mutex, &next))
}

int cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict mutex, const struct timespec *restrict until)
{
    WAIT(thrd_timedout, c11_wait(cond, mutex, &next))
}
