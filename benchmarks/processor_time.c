/* Clocks that stand still while another process has the core: in a program that is started with LD_PRELOAD of this, a second is one of its own
   processor time. `seconds.py --processor-time` builds and uses it. Linux. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/time.h>
#include <time.h>

typedef int (*Clock)(clockid_t, struct timespec *);

static Clock own(void) {
    static Clock found;
    if (!found) found = (Clock)dlsym(RTLD_NEXT, "clock_gettime");
    return found;
}

int clock_gettime(clockid_t clock, struct timespec *time) {
    static struct timespec begun[2];
    int monotonic = clock == CLOCK_MONOTONIC || clock == CLOCK_MONOTONIC_RAW || clock == CLOCK_MONOTONIC_COARSE;
    if (!monotonic && clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE) return own()(clock, time);
    if (!begun[monotonic].tv_sec) own()(monotonic ? CLOCK_MONOTONIC : CLOCK_REALTIME, &begun[monotonic]);
    int result = own()(CLOCK_PROCESS_CPUTIME_ID, time);
    time->tv_sec += begun[monotonic].tv_sec;
    time->tv_nsec += begun[monotonic].tv_nsec;
    if (time->tv_nsec >= 1000000000) {
        time->tv_sec++;
        time->tv_nsec -= 1000000000;
    }
    return result;
}

int gettimeofday(struct timeval *restrict time, void *restrict zone) {
    struct timespec now;
    (void)zone;
    int result = clock_gettime(CLOCK_REALTIME, &now);
    time->tv_sec = now.tv_sec;
    time->tv_usec = now.tv_nsec / 1000;
    return result;
}
