/* Records what a process writes below a folder, in order: loaded before libc (LD_PRELOAD), it writes one record a call
   into the file RECORD_TO: kind, length of the path, path, offset, length of the data, data. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

static int record = -1;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void put(const void *data, size_t size) {
    while (size > 0) {
        ssize_t done = syscall(SYS_write, record, data, size);
        if (done <= 0) abort();
        data = (const char *)data + done;
        size -= (size_t)done;
    }
}

static int watched(const char *path) {
    const char *below = getenv("RECORD_BELOW");
    return record >= 0 && below && strncmp(path, below, strlen(below)) == 0;
}

__attribute__((constructor)) static void begin(void) {
    const char *to = getenv("RECORD_TO");
    if (to) record = (int)syscall(SYS_openat, AT_FDCWD, to, O_WRONLY | O_CREAT | O_APPEND, 0600);
}

static void note(char kind, const char *path, uint64_t offset, const void *data, uint64_t size) {
    uint32_t length = (uint32_t)strlen(path);
    int error = errno;
    pthread_mutex_lock(&lock);
    put(&kind, 1); put(&length, 4); put(path, length); put(&offset, 8); put(&size, 8);
    if (data) put(data, size);
    pthread_mutex_unlock(&lock);
    errno = error;
}

static int named(int descriptor, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    return watched(path);
}

#define REAL(result, name, ...) \
    static result (*real)(__VA_ARGS__); \
    if (!real) real = (result(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

static int opened(int descriptor, int flags, int existed) {
    char path[PATH_MAX];
    if (descriptor >= 0 && (flags & (O_CREAT | O_TRUNC)) && named(descriptor, path)) {
        if (!existed) note('c', path, 0, 0, 0);
        else if (flags & O_TRUNC) note('t', path, 0, 0, 0);
    }
    return descriptor;
}

static int exists(const char *path) {
    struct stat found;
    return stat(path, &found) == 0;
}

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        va_list more; va_start(more, flags); mode_t mode = va_arg(more, mode_t); va_end(more); \
        int existed = exists(path); \
        return opened((int)syscall(SYS_openat, AT_FDCWD, path, flags, mode), flags, existed); \
    }
OPEN(open)
OPEN(open64)

static ssize_t wrote(int descriptor, const void *data, ssize_t done, off_t offset) {
    char path[PATH_MAX];
    if (done > 0 && descriptor != record && named(descriptor, path)) note('w', path, (uint64_t)offset, data, (uint64_t)done);
    return done;
}

ssize_t write(int descriptor, const void *data, size_t size) {
    off_t offset = lseek(descriptor, 0, SEEK_CUR);
    return wrote(descriptor, data, syscall(SYS_write, descriptor, data, size), offset < 0 ? 0 : offset);
}

ssize_t writev(int descriptor, const struct iovec *parts, int count) {
    off_t offset = lseek(descriptor, 0, SEEK_CUR);
    ssize_t done = syscall(SYS_writev, descriptor, parts, count), left = done;
    for (int part = 0; part < count && left > 0; part++) {
        ssize_t size = left < (ssize_t)parts[part].iov_len ? left : (ssize_t)parts[part].iov_len;
        wrote(descriptor, parts[part].iov_base, size, offset < 0 ? 0 : offset);
        if (offset >= 0) offset += size;
        left -= size;
    }
    return done;
}

ssize_t pwrite64(int descriptor, const void *data, size_t size, off_t offset) {
    return wrote(descriptor, data, syscall(SYS_pwrite64, descriptor, data, size, offset), offset);
}

ssize_t pwrite(int descriptor, const void *data, size_t size, off_t offset) {
    return pwrite64(descriptor, data, size, offset);
}

static int cut(int descriptor, off_t length) {
    char path[PATH_MAX];
    int failed = (int)syscall(SYS_ftruncate, descriptor, length);
    if (!failed && named(descriptor, path)) note('t', path, (uint64_t)length, 0, 0);
    return failed;
}

int ftruncate(int descriptor, off_t length) { return cut(descriptor, length); }
int ftruncate64(int descriptor, off_t length) { return cut(descriptor, length); }

static int synced(int descriptor, long call) {
    char path[PATH_MAX];
    int failed = (int)syscall(call, descriptor);
    if (!failed && named(descriptor, path)) note('s', path, 0, 0, 0);
    return failed;
}

int fsync(int descriptor) { return synced(descriptor, SYS_fsync); }
int fdatasync(int descriptor) { return synced(descriptor, SYS_fdatasync); }

int unlink(const char *path) {
    char whole[PATH_MAX];
    int known = realpath(path, whole) != 0;
    int failed = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (!failed && known && watched(whole)) note('u', whole, 0, 0, 0);
    return failed;
}

int mkdir(const char *path, mode_t mode) {
    char whole[PATH_MAX];
    int failed = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
    if (!failed && realpath(path, whole) && watched(whole)) note('d', whole, 0, 0, 0);
    return failed;
}

/* Two names that are exchanged: the data is the other one. */
int renameat2(int from, const char *path, int to, const char *other, unsigned int flags) {
    char whole[PATH_MAX], second[PATH_MAX];
    int failed = (int)syscall(SYS_renameat2, from, path, to, other, flags);
    if (!failed && flags == 2 && realpath(path, whole) && realpath(other, second) && watched(whole))
        note('x', whole, 0, second, strlen(second));
    return failed;
}
