/* A file system that fails, as a preloaded library: the n-th call that changes something below a folder fails.
 *
 * FAULT_ROOT  folder below which calls count
 * FAULT_AT    which of them fails, from 1; none if it is 0 or unset
 * FAULT_KIND  an errno as a number, "short" (half of the data is written), "kill" (the process dies before the call),
 *             "torn" (half of the data is written, then the process dies), "forward" or "backward": from then on the
 *             clock of the day is ten years off; "wander": it jumps by up to ten years, to and fro; "slow": the call
 *             takes FAULT_SLOW milliseconds more
 * FAULT_STAY  set: all later calls fail as well, as on a disk that stays full
 * FAULT_LOG   file that gets a line for each call that counts
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <sys/uio.h>
#include <unistd.h>

static int calls;
static int inside;
static time_t shift;

static int below(const char *path) {
    const char *root = getenv("FAULT_ROOT");
    return root && path && strncmp(path, root, strlen(root)) == 0;
}

static int below_fd(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return below(path);
}

static int below_at(int folder, const char *path) {
    if (path && path[0] == '/') return below(path);
    if (folder != AT_FDCWD) return below_fd(folder);
    char here[PATH_MAX], whole[2 * PATH_MAX];
    if (!getcwd(here, sizeof here)) return 0;
    snprintf(whole, sizeof whole, "%s/%s", here, path ? path : "");
    return below(whole);
}

/* 0: go on; 1: fail with errno; 2: write half; 3: write half and die */
static int fails(const char *name) {
    const char *at = getenv("FAULT_AT"), *kind = getenv("FAULT_KIND"), *log = getenv("FAULT_LOG");
    int number = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
    if (log && !inside) {
        inside = 1;
        FILE *file = fopen(log, "a");
        if (file) { fprintf(file, "%d %s\n", number, name); fclose(file); }
        inside = 0;
    }
    int wanted = at ? atoi(at) : 0;
    if (!wanted || !kind || number < wanted || (number > wanted && !getenv("FAULT_STAY"))) return 0;
    if (!strcmp(kind, "kill")) { kill(getpid(), SIGKILL); pause(); }
    if (!strcmp(kind, "forward") || !strcmp(kind, "backward")) {
        shift = (kind[0] == 'f' ? 1 : -1) * (time_t)(3650 * 86400);
        return 0;
    }
    if (!strcmp(kind, "wander")) {
        shift = (time_t)(number * 2654435761u % 7300) * 86400 - (time_t)3650 * 86400;
        return 0;
    }
    if (!strcmp(kind, "slow")) {
        const char *slow = getenv("FAULT_SLOW");
        usleep(1000 * (slow ? atoi(slow) : 20));
        return 0;
    }
    if (!strcmp(kind, "torn")) return 3;
    if (!strcmp(kind, "short")) return 2;
    errno = atoi(kind);
    return 1;
}

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)
#define WRITING(name, size, full, half) \
    int outcome = fd > 2 && !inside && below_fd(fd) ? fails(#name) : 0; \
    if (outcome == 1) return -1; \
    if (outcome) { ssize_t done = (size) > 1 ? half : full; if (outcome == 3) { kill(getpid(), SIGKILL); pause(); } return done; } \
    return full

ssize_t write(int fd, const void *data, size_t size) {
    REAL(write);
    WRITING(write, size, real(fd, data, size), real(fd, data, size / 2));
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t at) {
    REAL(pwrite);
    WRITING(pwrite, size, real(fd, data, size, at), real(fd, data, size / 2, at));
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t at) {
    REAL(pwrite64);
    WRITING(pwrite64, size, real(fd, data, size, at), real(fd, data, size / 2, at));
}
#define CHANGING(name, condition, call) \
    int outcome = !inside && (condition) ? fails(#name) : 0; \
    if (outcome == 1) return -1; \
    if (outcome == 3) { kill(getpid(), SIGKILL); pause(); } \
    return call

int fsync(int fd) { REAL(fsync); CHANGING(fsync, below_fd(fd), real(fd)); }
int fdatasync(int fd) { REAL(fdatasync); CHANGING(fdatasync, below_fd(fd), real(fd)); }
int ftruncate(int fd, off_t size) { REAL(ftruncate); CHANGING(ftruncate, below_fd(fd), real(fd, size)); }
int ftruncate64(int fd, off64_t size) { REAL(ftruncate64); CHANGING(ftruncate64, below_fd(fd), real(fd, size)); }
int rename(const char *old, const char *new) {
    REAL(rename);
    CHANGING(rename, below_at(AT_FDCWD, new), real(old, new));
}
int renameat(int a, const char *old, int b, const char *new) {
    REAL(renameat);
    CHANGING(renameat, below_at(b, new), real(a, old, b, new));
}
int mkdir(const char *path, mode_t mode) { REAL(mkdir); CHANGING(mkdir, below_at(AT_FDCWD, path), real(path, mode)); }
int unlink(const char *path) { REAL(unlink); CHANGING(unlink, below_at(AT_FDCWD, path), real(path)); }

int clock_gettime(clockid_t clock, struct timespec *now) {
    REAL(clock_gettime);
    int outcome = real(clock, now);
    if (!outcome && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec += shift;
    return outcome;
}
int gettimeofday(struct timeval *now, void *zone) {
    REAL(gettimeofday);
    int outcome = real(now, zone);
    if (!outcome) now->tv_sec += shift;
    return outcome;
}
time_t time(time_t *kept) {
    REAL(time);
    time_t now = real(0) + shift;
    if (kept) *kept = now;
    return now;
}

#define OPENING(name, folder, call) \
    mode_t mode = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); } \
    int outcome = !inside && (flags & O_CREAT) && below_at(folder, path) ? fails(#name) : 0; \
    if (outcome == 1) return -1; \
    if (outcome == 3) { kill(getpid(), SIGKILL); pause(); } \
    return call

int open(const char *path, int flags, ...) { REAL(open); OPENING(open, AT_FDCWD, real(path, flags, mode)); }
int open64(const char *path, int flags, ...) { REAL(open64); OPENING(open64, AT_FDCWD, real(path, flags, mode)); }
int openat(int at, const char *path, int flags, ...) { REAL(openat); OPENING(openat, at, real(at, path, flags, mode)); }
int openat64(int at, const char *path, int flags, ...) { REAL(openat64); OPENING(openat64, at, real(at, path, flags, mode)); }

/* FAULT_LOCKS: an errno that every flock below the root fails with; "local": it succeeds and keeps nobody out */
int flock(int fd, int operation) {
    REAL(flock);
    const char *locks = getenv("FAULT_LOCKS");
    if (!locks || !below_fd(fd)) return real(fd, operation);
    if (!strcmp(locks, "local")) return 0;
    errno = atoi(locks);
    return -1;
}
