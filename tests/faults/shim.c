/* Counts the durable system calls of a process below some folders, and at a chosen one kills the
 * process or makes the call fail. Preloaded into a test's own Python; armed by a call from there. */
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
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum { COUNT, KILL_BEFORE, KILL_AFTER, FAIL };

static char folders[8][PATH_MAX];
static int folder_count, mode, failure;
static long calls, target;

void shim_arm(const char *list, int how, long at, int error) {
  folder_count = 0;
  for (const char *from = list; *from && folder_count < 8;) {
    const char *end = strchrnul(from, ':');
    snprintf(folders[folder_count++], PATH_MAX, "%.*s", (int)(end - from), from);
    from = *end ? end + 1 : end;
  }
  calls = 0, mode = how, target = at, failure = error;
}

long shim_calls(void) { return calls; }

static int below(const char *path) {
  for (int n = 0; n < folder_count; n++)
    if (!strncmp(path, folders[n], strlen(folders[n]))) return 1;
  return 0;
}

static int is_ours(int fd, const char *path) {
  char name[64], real[PATH_MAX];
  if (!folder_count) return 0;
  if (path && path[0] == '/') return below(path);
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  ssize_t size = readlink(name, real, sizeof real - 1);
  if (size < 0) return 0;
  real[size] = 0;
  return below(real);
}

/* Returns 1 if the call must fail. */
static int before(int fd, const char *path) {
  int saved = errno;
  if (!is_ours(fd, path)) return errno = saved, 0;
  errno = saved;
  if (++calls != target) return 0;
  if (mode == KILL_BEFORE) kill(getpid(), SIGKILL);
  if (mode == FAIL) return errno = failure, 1;
  return 0;
}

static void after(void) {
  if (mode == KILL_AFTER && target && calls == target) kill(getpid(), SIGKILL);
}

#define REAL(name) \
  static __typeof__(name) *real; \
  if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define WRAP(type, name, params, args, fd, path) \
  type name params { \
    REAL(name); \
    if (before(fd, path)) return -1; \
    type result = real args; \
    after(); \
    return result; \
  }

WRAP(ssize_t, write, (int fd, const void *data, size_t size), (fd, data, size), fd, NULL)
WRAP(ssize_t, pwrite, (int fd, const void *data, size_t size, off_t at), (fd, data, size, at), fd, NULL)
WRAP(ssize_t, pwrite64, (int fd, const void *data, size_t size, off64_t at), (fd, data, size, at), fd, NULL)
WRAP(int, fsync, (int fd), (fd), fd, NULL)
WRAP(int, fdatasync, (int fd), (fd), fd, NULL)
WRAP(int, ftruncate, (int fd, off_t size), (fd, size), fd, NULL)
WRAP(int, ftruncate64, (int fd, off64_t size), (fd, size), fd, NULL)
WRAP(int, rename, (const char *from, const char *to), (from, to), -1, to)
WRAP(int, link, (const char *from, const char *to), (from, to), -1, to)
WRAP(int, unlink, (const char *path), (path), -1, path)
WRAP(int, mkdir, (const char *path, mode_t bits), (path, bits), -1, path)
WRAP(int, renameat, (int one, const char *from, int two, const char *to), (one, from, two, to), two, to)
WRAP(int, linkat, (int one, const char *from, int two, const char *to, int flags), (one, from, two, to, flags), two, to)
WRAP(int, unlinkat, (int fd, const char *path, int flags), (fd, path, flags), fd, path)

#define OPEN(name, params, fd, path, call) \
  int name params { \
    REAL(name); \
    mode_t bits = 0; \
    if (flags & (O_CREAT | O_TMPFILE)) { \
      va_list rest; \
      va_start(rest, flags); \
      bits = va_arg(rest, mode_t); \
      va_end(rest); \
    } \
    int durable = flags & (O_CREAT | O_TRUNC); \
    if (durable && before(fd, path)) return -1; \
    int result = real call; \
    if (durable) after(); \
    return result; \
  }

OPEN(open, (const char *path, int flags, ...), -1, path, (path, flags, bits))
OPEN(open64, (const char *path, int flags, ...), -1, path, (path, flags, bits))
OPEN(openat, (int fd, const char *path, int flags, ...), fd, path, (fd, path, flags, bits))
OPEN(openat64, (int fd, const char *path, int flags, ...), fd, path, (fd, path, flags, bits))
