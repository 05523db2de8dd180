// Delays every fsync and fdatasync, as a busy disk does. scripts/test-stressed loads it into every
// program that the tests start. PROOF is a folder: a process creates a file in `loaded` when it starts
// as the daemon, and one in `delayed` at its first sync, which proves that the delay was in effect.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#ifndef DELAY_MS
#error "DELAY_MS: how long a sync waits, in milliseconds"
#endif
#ifndef PROOF
#error "PROOF: the folder for the files that prove the loading and the delay"
#endif

static int is_daemon;

static void leave(const char *folder) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s/%d", PROOF, folder, (int)getpid());
    int file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    if (file >= 0) close(file);
}

__attribute__((constructor)) static void loaded(int argc, char **argv) {
    const char *name = argc > 0 ? strrchr(argv[0], '/') : NULL;
    name = name ? name + 1 : argc > 0 ? argv[0] : "";
    if (strcmp(name, "holdpoint") != 0) return;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "daemon") == 0) is_daemon = 1;
    }
    if (is_daemon) leave("loaded");
}

static void delay(void) {
    static int seen;
    if (is_daemon && !seen) {
        seen = 1;
        leave("delayed");
    }
    struct timespec left = {DELAY_MS / 1000, (DELAY_MS % 1000) * 1000000L};
    while (nanosleep(&left, &left) != 0) {}
}

int fsync(int file) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    delay();
    return real(file);
}

int fdatasync(int file) {
    static int (*real)(int);
    if (!real) real = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    delay();
    return real(file);
}
