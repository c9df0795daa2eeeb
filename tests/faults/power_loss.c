/*
 * A loss of power: what was not flushed is on the disk in part, or not at all.
 *
 * Of each file the writes since its last flush are kept or dropped one by one, and some are torn. Names are
 * made, changed and removed in the order of a journal: of those that no flush has made durable the last ones are
 * undone. A flush of a folder makes the changes in it durable, and all that came before; a flush of a file does
 * so for its own name. What was there before the process was armed counts as flushed.
 */
#define _GNU_SOURCE
#include "power_loss.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SECTOR 512
#define MOST_FILES 512
#define MOST_CHANGES 4096

typedef struct {
    size_t at, length, before, after;
    char *bytes;
} Write;

typedef struct {
    dev_t device;
    ino_t inode;
    /* Never closed: that would end the locks that SQLite holds on the file in this process. */
    int fd;
    char *flushed, *now;
    size_t flushed_size, now_size;
    Write *writes;
    size_t count, room;
} File;

typedef struct {
    enum change kind;
    char *from, *to, *grave;
    ino_t inode;
    mode_t bits;
} Change;

static File files[MOST_FILES];
static size_t file_count;
static Change changes[MOST_CHANGES];
static size_t change_count, durable;
static char graves[PATH_MAX];
static uint64_t dice;

void loss_begin(const char *folder, long seed) {
    snprintf(graves, sizeof graves, "%s", folder);
    dice = 0x9E3779B97F4A7C15ull * (uint64_t)(seed + 1);
    file_count = change_count = durable = 0;
}

static uint64_t roll(uint64_t sides) {
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return dice % sides;
}

static void fail(const char *what) {
    fprintf(stderr, "power_loss: %s: %s\n", what, strerror(errno));
    abort();
}

static char *content(int fd, size_t *size) {
    struct stat facts;
    if (fstat(fd, &facts)) fail("fstat");
    char *bytes = malloc((size_t)facts.st_size + 1);
    size_t read = 0;
    while (read < (size_t)facts.st_size) {
        ssize_t part = pread(fd, bytes + read, (size_t)facts.st_size - read, (off_t)read);
        if (part < 0) fail("pread");
        if (part == 0) break;
        read += (size_t)part;
    }
    *size = read;
    return bytes;
}

static File *file_of(int fd, int is_new) {
    struct stat facts;
    if (fstat(fd, &facts) || !S_ISREG(facts.st_mode)) return NULL;
    for (size_t i = 0; i < file_count; i++)
        if (files[i].device == facts.st_dev && files[i].inode == facts.st_ino) return &files[i];
    if (!is_new) return NULL;
    if (file_count == MOST_FILES) fail("too many files");
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    File *file = &files[file_count++];
    *file = (File){.device = facts.st_dev, .inode = facts.st_ino, .fd = open(link, O_RDWR | O_CLOEXEC)};
    if (file->fd < 0) fail("open");
    file->flushed = content(file->fd, &file->flushed_size);
    file->now = content(file->fd, &file->now_size);
    return file;
}

void loss_before_data(int fd) { file_of(fd, 1); }

void loss_after_data(int fd) {
    File *file = file_of(fd, 0);
    if (!file) return;
    size_t size, first = 0, last;
    char *bytes = content(file->fd, &size);
    size_t both = size < file->now_size ? size : file->now_size;
    while (first < both && bytes[first] == file->now[first]) first++;
    last = size;
    if (size == file->now_size)
        while (last > first && bytes[last - 1] == file->now[last - 1]) last--;
    else if (size < file->now_size && first == size)
        last = first;
    if (last > first || size != file->now_size) {
        if (file->count == file->room) {
            file->room = file->room ? 2 * file->room : 16;
            file->writes = realloc(file->writes, file->room * sizeof(Write));
        }
        Write *write = &file->writes[file->count++];
        *write = (Write){.at = first, .length = last - first, .before = file->now_size, .after = size};
        write->bytes = malloc(write->length + 1);
        memcpy(write->bytes, bytes + first, write->length);
    }
    free(file->now);
    file->now = bytes;
    file->now_size = size;
}

static int is_in(const char *folder, const char *path) {
    size_t size = strlen(folder);
    const char *last = strrchr(path, '/');
    return last && (size_t)(last - path) == size && strncmp(path, folder, size) == 0;
}

void loss_after_flush(int fd, const char *path) {
    struct stat facts;
    if (fstat(fd, &facts)) return;
    for (size_t i = change_count; i > durable; i--) {
        Change *change = &changes[i - 1];
        int is_here = S_ISDIR(facts.st_mode)
                          ? is_in(path, change->from) || (change->to && is_in(path, change->to))
                          : change->inode == facts.st_ino && change->kind != REMOVED;
        if (is_here) {
            durable = i;
            break;
        }
    }
    File *file = file_of(fd, 0);
    if (!file) return;
    free(file->flushed);
    file->flushed = malloc(file->now_size + 1);
    memcpy(file->flushed, file->now, file->now_size);
    file->flushed_size = file->now_size;
    file->count = 0;
}

void loss_before_change(struct loss_change *change, enum change kind, const char *from, const char *to) {
    struct stat facts;
    *change = (struct loss_change){.kind = kind, .from = strdup(from), .to = to ? strdup(to) : NULL};
    const char *lost = kind == REMOVED ? from : kind == RENAMED ? to : NULL;
    if (lstat(kind == MADE || kind == MADE_FOLDER ? from : lost ? lost : from, &facts) == 0) {
        change->was_there = 1;
        change->bits = facts.st_mode & 07777;
        if (lost && !S_ISDIR(facts.st_mode)) {
            char grave[PATH_MAX + 32];
            snprintf(grave, sizeof grave, "%s/%zu", graves, change_count);
            unlink(grave);
            if (linkat(AT_FDCWD, lost, AT_FDCWD, grave, 0)) fail("linkat");
            change->grave = strdup(grave);
        }
    }
}

void loss_after_change(struct loss_change *change, int is_done) {
    struct stat facts;
    /* A file that was opened and was there already is no change. */
    if (!is_done || (change->kind == MADE && change->was_there)) return;
    if (change_count == MOST_CHANGES) fail("too many changes");
    const char *here = change->to ? change->to : change->from;
    changes[change_count++] = (Change){
        .kind = change->kind,
        .from = change->from,
        .to = change->to,
        .grave = change->grave,
        .bits = change->bits,
        .inode = lstat(here, &facts) == 0 ? facts.st_ino : 0,
    };
}

/* What somebody else has changed meanwhile, as a launcher that removes its file, stays as it is. */
static void undo(const Change *change) {
    switch (change->kind) {
        case MADE: unlink(change->from); break;
        case MADE_FOLDER: rmdir(change->from); break;
        case LINKED: unlink(change->to); break;
        case REMOVED:
            if (change->grave) (void)!link(change->grave, change->from);
            else mkdir(change->from, change->bits);
            break;
        case RENAMED:
            if (rename(change->to, change->from) == 0 && change->grave) (void)!link(change->grave, change->to);
            break;
        case EXCHANGED: renameat2(AT_FDCWD, change->to, AT_FDCWD, change->from, RENAME_EXCHANGE); break;
    }
}

static void lose_writes(File *file) {
    size_t most = file->flushed_size, size = file->flushed_size;
    for (size_t i = 0; i < file->count; i++)
        if (file->writes[i].after > most) most = file->writes[i].after;
    char *bytes = calloc(most + 1, 1);
    memcpy(bytes, file->flushed, size);
    for (size_t i = 0; i < file->count; i++) {
        Write *write = &file->writes[i];
        if (roll(2)) continue;
        size_t length = write->length;
        if (length > SECTOR && roll(4) == 0) length = SECTOR * (1 + roll(length / SECTOR));
        if (write->after < write->before && write->after < size) {
            memset(bytes + write->after, 0, size - write->after);
            size = write->after;
        }
        if (length) memcpy(bytes + write->at, write->bytes, length);
        if (write->at + length > size) size = write->at + length;
    }
    if (ftruncate(file->fd, (off_t)size)) fail("ftruncate");
    for (size_t done = 0; done < size;) {
        ssize_t part = pwrite(file->fd, bytes + done, size - done, (off_t)done);
        if (part <= 0) fail("pwrite");
        done += (size_t)part;
    }
    free(bytes);
}

void loss_of_power(void) {
    size_t kept = durable + roll(change_count - durable + 1);
    for (size_t i = 0; i < file_count; i++)
        if (files[i].count) lose_writes(&files[i]);
    for (size_t i = change_count; i > kept; i--) undo(&changes[i - 1]);
}
