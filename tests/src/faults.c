// Makes one call of a program that changes files fail, or ends the program there: preloaded by src/faults.rs.
//
// The calls are counted from 1. Of writes and syncs, only those of regular files count: a full disk breaks no pipe.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

enum kind { NONE, KILL, TORN, ONCE, FULL };

static enum kind kind;
static int at;
static atomic_int calls;

#define REAL(type, name, ...) ((type(*)(__VA_ARGS__))dlsym(RTLD_NEXT, #name))

__attribute__((constructor)) static void read_environment(void) {
    const char *name = getenv("HOLDPOINT_FAULT");
    const char *number = getenv("HOLDPOINT_FAULT_AT");
    if (!name || !number) return;
    at = atoi(number);
    kind = !strcmp(name, "kill") ? KILL : !strcmp(name, "torn") ? TORN : !strcmp(name, "once") ? ONCE : FULL;
}

static void report(void) {
    static const char line[] = "the fault was reached\n";
    REAL(ssize_t, write, int, const void *, size_t)(2, line, sizeof line - 1);
}

static void end(void) {
    report();
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

// Whether this call fails for want of space. Does not return where the program ends here.
static int fails(void) {
    if (kind == NONE) return 0;
    int call = atomic_fetch_add(&calls, 1) + 1;
    if (call < at) return 0;
    if (kind == KILL || kind == TORN) {
        if (call == at) end();
        return 0;
    }
    if (call > at && kind == ONCE) return 0;
    if (call == at) report();
    errno = ENOSPC;
    return 1;
}

static int is_regular(int file) {
    struct stat about;
    return fstat(file, &about) == 0 && S_ISREG(about.st_mode);
}

// The bytes of a write that still reach the file: with TORN, the program ends in the middle of it.
static int tears(void) {
    return kind == TORN && atomic_load(&calls) + 1 == at;
}

ssize_t write(int file, const void *bytes, size_t count) {
    ssize_t (*real)(int, const void *, size_t) = REAL(ssize_t, write, int, const void *, size_t);
    if (!is_regular(file)) return real(file, bytes, count);
    if (tears()) real(file, bytes, count / 2);
    return fails() ? -1 : real(file, bytes, count);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t offset) {
    ssize_t (*real)(int, const void *, size_t, off64_t) =
        REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
    if (!is_regular(file)) return real(file, bytes, count, offset);
    if (tears()) real(file, bytes, count / 2, offset);
    return fails() ? -1 : real(file, bytes, count, offset);
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t offset) {
    return pwrite64(file, bytes, count, offset);
}

int ftruncate64(int file, off64_t length) {
    return fails() ? -1 : REAL(int, ftruncate64, int, off64_t)(file, length);
}

int ftruncate(int file, off_t length) {
    return ftruncate64(file, length);
}

int fsync(int file) {
    return is_regular(file) && fails() ? -1 : REAL(int, fsync, int)(file);
}

int fdatasync(int file) {
    return is_regular(file) && fails() ? -1 : REAL(int, fdatasync, int)(file);
}

int rename(const char *from, const char *to) {
    return fails() ? -1 : REAL(int, rename, const char *, const char *)(from, to);
}

int linkat(int from_folder, const char *from, int to_folder, const char *to, int flags) {
    return fails() ? -1 : REAL(int, linkat, int, const char *, int, const char *, int)(from_folder, from, to_folder, to, flags);
}

int mkdir(const char *path, mode_t mode) {
    return fails() ? -1 : REAL(int, mkdir, const char *, mode_t)(path, mode);
}

// Removing a file needs no space: the program can only end there.
int unlink(const char *path) {
    if (kind == KILL || kind == TORN) fails();
    return REAL(int, unlink, const char *)(path);
}

int open64(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & (O_CREAT | __O_TMPFILE)) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
        if (access(path, F_OK) != 0 && fails()) return -1;
    }
    return REAL(int, open64, const char *, int, ...)(path, flags, mode);
}

int open(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & (O_CREAT | __O_TMPFILE)) {
        va_list rest;
        va_start(rest, flags);
        mode = va_arg(rest, mode_t);
        va_end(rest);
    }
    return open64(path, flags, mode);
}
