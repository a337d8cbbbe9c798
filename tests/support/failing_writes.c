/* Lets the n-th call fail that changes something below a folder: loaded before libc (LD_PRELOAD), told by fail_at().
   With `from_here_on` every later one that would take space or change a name fails too, as on a disk that is full. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static char below[PATH_MAX];
static volatile long calls, failing, hit;
static volatile int error, from_here_on;
static const char *volatile failed = "";

void fail_at(const char *folder, long nth, int number, int later) {
    snprintf(below, sizeof below, "%s", folder);
    error = number; from_here_on = later; hit = 0; failed = ""; calls = 0; failing = nth;
}
long fail_calls(void) { return calls; }
long fail_hits(void) { return hit; }
const char *fail_first(void) { return failed; } /* the name of the first call that failed */

static int is_below(const char *path) { return below[0] && strncmp(path, below, strlen(below)) == 0; }

static int fails_in(const char *name, int takes_space) {
    long now = __sync_add_and_fetch(&calls, 1);
    if (failing && (now == failing || (from_here_on && now > failing && takes_space))) {
        if (__sync_add_and_fetch(&hit, 1) == 1) failed = name;
        errno = error;
        return 1;
    }
    return 0;
}

static int fails_on_in(const char *name, int descriptor, int takes_space) {
    char link[64], path[PATH_MAX];
    if (!below[0]) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return is_below(path) && fails_in(name, takes_space);
}
#define fails(takes_space) fails_in(__func__, takes_space)
#define fails_on(descriptor, takes_space) fails_on_in(__func__, descriptor, takes_space)

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        va_list more; va_start(more, flags); mode_t mode = va_arg(more, mode_t); va_end(more); \
        if ((flags & (O_CREAT | O_WRONLY | O_RDWR)) && is_below(path) && fails(flags & O_CREAT)) return -1; \
        return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode); \
    }
OPEN(open)
OPEN(open64)

ssize_t write(int f, const void *data, size_t size) {
    return fails_on(f, 1) ? -1 : syscall(SYS_write, f, data, size);
}
ssize_t writev(int f, const struct iovec *parts, int count) {
    return fails_on(f, 1) ? -1 : syscall(SYS_writev, f, parts, count);
}
ssize_t pwrite64(int f, const void *data, size_t size, off_t at) {
    return fails_on(f, 1) ? -1 : syscall(SYS_pwrite64, f, data, size, at);
}
ssize_t pwrite(int f, const void *data, size_t size, off_t at) { return pwrite64(f, data, size, at); }
int ftruncate(int f, off_t length) { return fails_on(f, 0) ? -1 : (int)syscall(SYS_ftruncate, f, length); }
int ftruncate64(int f, off_t length) { return ftruncate(f, length); }
int truncate(const char *path, off_t length) {
    return is_below(path) && fails(0) ? -1 : (int)syscall(SYS_truncate, path, length);
}
int truncate64(const char *path, off_t length) { return truncate(path, length); }
int fsync(int f) { return fails_on(f, 1) ? -1 : (int)syscall(SYS_fsync, f); }
int fdatasync(int f) { return fails_on(f, 1) ? -1 : (int)syscall(SYS_fdatasync, f); }
int unlink(const char *path) { return is_below(path) && fails(0) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0); }
int mkdir(const char *path, mode_t mode) {
    return is_below(path) && fails(1) ? -1 : (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
}
int rename(const char *from, const char *to) {
    return is_below(to) && fails(0) ? -1 : (int)syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int renameat2(int one, const char *from, int other, const char *to, unsigned flags) {
    return is_below(to) && fails(0) ? -1 : (int)syscall(SYS_renameat2, one, from, other, to, flags);
}
int rmdir(const char *path) {
    return is_below(path) && fails(0) ? -1 : (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}
ssize_t sendfile(int to, int from, off_t *at, size_t size) {
    return fails_on(to, 1) ? -1 : syscall(SYS_sendfile, to, from, at, size);
}
ssize_t sendfile64(int to, int from, off64_t *at, size_t size) { return sendfile(to, from, (off_t *)at, size); }
int link(const char *from, const char *to) {
    return is_below(to) && fails(1) ? -1 : (int)syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0);
}
int chmod(const char *path, mode_t mode) {
    return is_below(path) && fails(0) ? -1 : (int)syscall(SYS_fchmodat, AT_FDCWD, path, mode);
}
