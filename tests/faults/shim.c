/*
 * Counts the calls by which a process changes files below some folders, and at call number n kills the
 * process or makes the call fail. Linux, glibc; loaded with LD_PRELOAD. It leaves out chown, which SQLite only
 * does as root, and to the owner that the file has.
 *
 * Nothing happens until fault_arm() is called in the process itself (by ctypes). The library takes itself
 * out of the environment when it is loaded, so that no child, no tmux server and no agent ever has it.
 */
#define _GNU_SOURCE
#include "power_loss.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum { COUNT = 0, KILL_BEFORE = 1, KILL_AFTER = 2, FAIL_ONCE = 3, FAIL_FROM = 4, FULL = 5, LOSE_POWER = 6 };

#define MOST_FOLDERS 8
#define MOST_CALLS 4096
#define NAME_SIZE 320

static char folders[MOST_FOLDERS][PATH_MAX];
static int folder_count;
static atomic_long calls;
static long target;
static int mode;
static int failure;
static atomic_int armed;
static atomic_int freed;
static char names[MOST_CALLS][NAME_SIZE];
/* Memory that is shared with the parent, which reads there what was broken: the process may be dead then. */
static char *broken;
static char aside[PATH_MAX];

/* Before a loss of power the calls come one after the other, and those of power_loss.c do not count. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static __thread int has_turn, is_inside;

__attribute__((constructor)) static void leave_the_environment(void) { unsetenv("LD_PRELOAD"); }

static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

/* fault_keep: where a loss of power keeps the files whose names are removed. */
void fault_keep(const char *folder) { snprintf(aside, sizeof aside, "%s", folder); }

/*
 * fault_arm: folders are separated by newlines; number is an errno for the failing modes, and the seed of a loss of
 * power.
 */
void fault_arm(const char *wanted, long n, int how, int number) {
    folder_count = 0;
    if (how == LOSE_POWER) loss_begin(aside, number);
    char copy[MOST_FOLDERS * PATH_MAX];
    snprintf(copy, sizeof copy, "%s", wanted);
    char *rest = NULL;
    for (char *one = strtok_r(copy, "\n", &rest); one && folder_count < MOST_FOLDERS; one = strtok_r(NULL, "\n", &rest))
        snprintf(folders[folder_count++], PATH_MAX, "%s", one);
    target = n;
    mode = how;
    failure = number;
    atomic_store(&calls, 0);
    atomic_store(&freed, 0);
    atomic_store(&armed, 1);
}

/* fault_tell: memory is NAME_SIZE bytes. */
void fault_tell(char *memory) { broken = memory; }
/* fault_lose_power: after the last call. */
void fault_lose_power(void) {
    pthread_mutex_lock(&turn);
    is_inside = 1;
    loss_of_power();
    die();
}
void fault_disarm(void) { atomic_store(&armed, 0); }
long fault_count(void) { return atomic_load(&calls); }
const char *fault_name(long n) { return n >= 1 && n < MOST_CALLS ? names[n] : ""; }

static int is_watched(const char *path) {
    size_t length = strlen(path);
    /* The index of the write-ahead log is shared memory: it is made anew after a crash. */
    if (length > 4 && strcmp(path + length - 4, "-shm") == 0) return 0;
    for (int i = 0; i < folder_count; i++) {
        size_t size = strlen(folders[i]);
        if (strncmp(path, folders[i], size) == 0 && (path[size] == '/' || path[size] == 0)) return 1;
    }
    return 0;
}

static int fd_path(int fd, char *out) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, out, PATH_MAX - 1);
    if (size < 0) return 0;
    out[size] = 0;
    return 1;
}

static int at_path(int folder, const char *path, char *out) {
    if (path[0] == '/') {
        snprintf(out, PATH_MAX, "%s", path);
        return 1;
    }
    char base[PATH_MAX];
    if (folder == AT_FDCWD) {
        if (!getcwd(base, sizeof base)) return 0;
    } else if (!fd_path(folder, base)) {
        return 0;
    }
    char whole[2 * PATH_MAX];
    snprintf(whole, sizeof whole, "%s/%s", base, path);
    snprintf(out, PATH_MAX, "%.*s", PATH_MAX - 1, whole);
    return 1;
}

/* A full disk: what needs space fails, until a file of the name "reserve" is deleted. An empty file needs none. */
static int needs_space(const char *call, const char *path) {
    const char *last = strrchr(path, '/');
    if (strncmp(call, "unlink", 6) == 0) {
        if (last && strcmp(last, "/reserve") == 0) atomic_store(&freed, 1);
        return 0;
    }
    if (atomic_load(&freed)) return 0;
    return strstr(call, "write") || strncmp(call, "sendfile", 8) == 0 || strncmp(call, "copy_file", 9) == 0 ||
           strncmp(call, "fallocate", 9) == 0 || strncmp(call, "mkdir", 5) == 0;
}

/* begin: 0 go on, 1 go on and then die, -1 fail. */
static int begin(const char *call, const char *path) {
    int kept = errno;
    if (!atomic_load(&armed) || is_inside || !is_watched(path)) {
        errno = kept;
        return 0;
    }
    if (mode == LOSE_POWER) {
        pthread_mutex_lock(&turn);
        has_turn = 1;
    }
    long number = atomic_fetch_add(&calls, 1) + 1;
    if (number < MOST_CALLS) snprintf(names[number], NAME_SIZE, "%s %s", call, path);
    if (number == target && broken) snprintf(broken, NAME_SIZE, "%s %s", call, path);
    int is_full = mode == FULL && needs_space(call, path);
    errno = is_full ? failure : kept;
    if (mode == FULL) return is_full ? -1 : 0;
    if (mode == FAIL_FROM ? number < target : number != target) return 0;
    switch (mode) {
        case KILL_BEFORE: die();
        case KILL_AFTER: return 1;
        case LOSE_POWER:
            is_inside = 1;
            loss_of_power();
            die();
        case FAIL_ONCE:
        case FAIL_FROM: errno = failure; return -1;
    }
    return 0;
}

static void end(int verdict) {
    if (verdict == 1) die();
    if (has_turn && !is_inside) {
        has_turn = 0;
        pthread_mutex_unlock(&turn);
    }
}

/* What power_loss.c does, without being counted. */
#define NOTE(what)                 \
    if (has_turn && !is_inside) {  \
        int kept_ = errno;         \
        is_inside = 1;             \
        what;                      \
        is_inside = 0;             \
        errno = kept_;             \
    }

static int begin_fd(const char *call, int fd) {
    if (!atomic_load(&armed)) return 0;
    char path[PATH_MAX];
    int kept = errno;
    int known = fd_path(fd, path);
    errno = kept;
    return known ? begin(call, path) : 0;
}

static int begin_at(const char *call, int folder, const char *path) {
    if (!atomic_load(&armed)) return 0;
    char whole[PATH_MAX];
    int kept = errno;
    int known = at_path(folder, path, whole);
    errno = kept;
    return known ? begin(call, whole) : 0;
}

#define REAL(type, name, ...)                                      \
    static type (*real)(__VA_ARGS__);                              \
    if (!real) real = (type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, name)

/* before and after are for power_loss.c; after sees the result. */
#define WRAP(type, name, parameters, arguments, verdict, before, after) \
    type name parameters {                                              \
        static type(*real) parameters;                                  \
        if (!real) real = dlsym(RTLD_NEXT, #name);                      \
        int verdict_ = (verdict);                                       \
        if (verdict_ < 0) return (type)-1;                              \
        struct loss_change change = {0};                                \
        (void)change;                                                   \
        NOTE(before)                                                    \
        type result = real arguments;                                   \
        NOTE(after)                                                     \
        end(verdict_);                                                  \
        return result;                                                  \
    }

#define WRAP_DATA(type, name, parameters, arguments, fd)                                  \
    WRAP(type, name, parameters, arguments, begin_fd(#name, fd), loss_before_data(fd),    \
         if (result >= 0) loss_after_data(fd))
#define WRAP_FLUSH(name)                                                      \
    WRAP(int, name, (int fd), (fd), begin_fd(#name, fd), , if (result == 0) { \
        char path[PATH_MAX];                                                  \
        if (fd_path(fd, path)) loss_after_flush(fd, path);                    \
    })
#define WRAP_FD(type, name, parameters, arguments, fd) \
    WRAP(type, name, parameters, arguments, begin_fd(#name, fd), , )
#define WRAP_PATH(type, name, parameters, arguments, folder, path) \
    WRAP(type, name, parameters, arguments, begin_at(#name, folder, path), , )
#define WRAP_CHANGE(name, parameters, arguments, kind, a, from, b, to)                                        \
    WRAP(int, name, parameters, arguments, begin_at(#name, b, to), begin_change(&change, kind, a, from, b, to), \
         loss_after_change(&change, result == 0))

static void begin_change(struct loss_change *change, enum change kind, int a, const char *from, int b, const char *to) {
    char first[PATH_MAX], second[PATH_MAX];
    if (at_path(a, from, first) && at_path(b, to, second))
        loss_before_change(change, kind, first, kind == LINKED || kind == RENAMED || kind == EXCHANGED ? second : NULL);
}

WRAP_DATA(ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size), fd)
WRAP_DATA(ssize_t, pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at), fd)
WRAP_DATA(ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at), fd)
WRAP_DATA(ssize_t, writev, (int fd, const struct iovec *parts, int count), (fd, parts, count), fd)
WRAP_DATA(ssize_t, pwritev, (int fd, const struct iovec *parts, int count, off_t at), (fd, parts, count, at), fd)
WRAP_DATA(ssize_t, pwritev2, (int fd, const struct iovec *parts, int count, off_t at, int how), (fd, parts, count, at, how), fd)
WRAP_DATA(ssize_t, sendfile, (int fd, int from, off_t *at, size_t size), (fd, from, at, size), fd)
WRAP_DATA(ssize_t, sendfile64, (int fd, int from, off64_t *at, size_t size), (fd, from, at, size), fd)
WRAP_DATA(ssize_t, copy_file_range, (int from, off64_t *a, int fd, off64_t *b, size_t size, unsigned how), (from, a, fd, b, size, how), fd)
WRAP_DATA(int, ftruncate, (int fd, off_t size), (fd, size), fd)
WRAP_DATA(int, ftruncate64, (int fd, off64_t size), (fd, size), fd)
WRAP_DATA(int, fallocate, (int fd, int how, off_t at, off_t size), (fd, how, at, size), fd)
WRAP_DATA(int, fallocate64, (int fd, int how, off64_t at, off64_t size), (fd, how, at, size), fd)
WRAP_FLUSH(fsync)
WRAP_FLUSH(fdatasync)
WRAP_FD(int, futimens, (int fd, const struct timespec times[2]), (fd, times), fd)
WRAP_FD(int, fchmod, (int fd, mode_t bits), (fd, bits), fd)
WRAP_PATH(int, utimensat, (int folder, const char *path, const struct timespec times[2], int how), (folder, path, times, how), folder, path)
WRAP_PATH(int, chmod, (const char *path, mode_t bits), (path, bits), AT_FDCWD, path)
WRAP_PATH(int, fchmodat, (int folder, const char *path, mode_t bits, int how), (folder, path, bits, how), folder, path)
WRAP_PATH(int, truncate, (const char *path, off_t size), (path, size), AT_FDCWD, path)
WRAP_CHANGE(rename, (const char *from, const char *to), (from, to), RENAMED, AT_FDCWD, from, AT_FDCWD, to)
WRAP_CHANGE(renameat, (int a, const char *from, int b, const char *to), (a, from, b, to), RENAMED, a, from, b, to)
WRAP_CHANGE(renameat2, (int a, const char *from, int b, const char *to, unsigned how), (a, from, b, to, how),
            how & RENAME_EXCHANGE ? EXCHANGED : RENAMED, a, from, b, to)
WRAP_CHANGE(link, (const char *from, const char *to), (from, to), LINKED, AT_FDCWD, from, AT_FDCWD, to)
WRAP_CHANGE(linkat, (int a, const char *from, int b, const char *to, int how), (a, from, b, to, how), LINKED, a, from, b, to)
WRAP_CHANGE(symlink, (const char *content, const char *path), (content, path), MADE, AT_FDCWD, path, AT_FDCWD, path)
WRAP_CHANGE(unlink, (const char *path), (path), REMOVED, AT_FDCWD, path, AT_FDCWD, path)
WRAP_CHANGE(unlinkat, (int folder, const char *path, int how), (folder, path, how), REMOVED, folder, path, folder, path)
WRAP_CHANGE(rmdir, (const char *path), (path), REMOVED, AT_FDCWD, path, AT_FDCWD, path)
WRAP_CHANGE(mkdir, (const char *path, mode_t bits), (path, bits), MADE_FOLDER, AT_FDCWD, path, AT_FDCWD, path)
WRAP_CHANGE(mkdirat, (int folder, const char *path, mode_t bits), (folder, path, bits), MADE_FOLDER, folder, path, folder, path)

#define IS_CHANGE(flags) ((flags) & (O_CREAT | O_TRUNC))
#define BITS(flags)                                        \
    mode_t bits = 0;                                       \
    if ((flags) & (O_CREAT | O_TMPFILE)) {                 \
        va_list more;                                      \
        va_start(more, flags);                             \
        bits = va_arg(more, mode_t);                       \
        va_end(more);                                      \
    }

/* A file that is emptied as it is opened is written to. */
static void before_open(struct loss_change *change, int flags, int folder, const char *path, int *fd) {
    if (flags & O_TRUNC) {
        *fd = openat(folder, path, O_RDWR | O_CLOEXEC);
        if (*fd >= 0) loss_before_data(*fd);
    }
    begin_change(change, MADE, folder, path, folder, path);
}

static void after_open(struct loss_change *change, int result, int fd) {
    if (fd >= 0) loss_after_data(fd);
    if (fd >= 0) close(fd);
    loss_after_change(change, result >= 0);
}

#define OPEN(folder, path, call)                                                    \
    int verdict_ = IS_CHANGE(flags) ? begin_at("open", folder, path) : 0, emptied = -1; \
    if (verdict_ < 0) return -1;                                                    \
    struct loss_change change = {0};                                                \
    NOTE(before_open(&change, flags, folder, path, &emptied))                       \
    int result = (call);                                                            \
    NOTE(after_open(&change, result, emptied))                                      \
    end(verdict_);                                                                  \
    return result

int open(const char *path, int flags, ...) {
    BITS(flags)
    REAL(int, "open", const char *, int, ...);
    OPEN(AT_FDCWD, path, real(path, flags, bits));
}

int open64(const char *path, int flags, ...) {
    BITS(flags)
    REAL(int, "open64", const char *, int, ...);
    OPEN(AT_FDCWD, path, real(path, flags, bits));
}

int openat(int folder, const char *path, int flags, ...) {
    BITS(flags)
    REAL(int, "openat", int, const char *, int, ...);
    OPEN(folder, path, real(folder, path, flags, bits));
}

int openat64(int folder, const char *path, int flags, ...) {
    BITS(flags)
    REAL(int, "openat64", int, const char *, int, ...);
    OPEN(folder, path, real(folder, path, flags, bits));
}

int creat(const char *path, mode_t bits) { return open(path, O_CREAT | O_WRONLY | O_TRUNC, bits); }
