/* A disk that fails on request: preloaded into a server, between SQLite and the system.
 *
 * FAULTS_FOLDER names the folder whose files are concerned, FAULTS_CONTROL a file of 64-bit numbers (struct control),
 * mapped here and in the test, which arms a fault and reads what happened. FAULTS_JOURNAL, where given, names a file to
 * which every change of a concerned file, every rename and every sync that succeeded is appended, in the order in which they happened:
 * from it a test makes the states that a power failure could have left behind.
 */
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
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* A rename doesn't fail, and is only in the journal. */
enum kind { WRITE = 1, SYNC = 2, TRUNCATE = 4, OPEN = 8, RENAME = 32 };

struct control {
    int64_t kinds;      /* which calls are counted and may fail */
    int64_t calls;      /* calls counted so far */
    int64_t first;      /* the number of the first call that fails; 0 for none */
    int64_t last;       /* the number of the last one */
    int64_t error;      /* errno of a failure; 0 for a call that reports success and does nothing */
    int64_t torn;       /* thousandths of its bytes that a failing write has written */
    int64_t delay;      /* microseconds of delay of every sync */
    int64_t failures;   /* calls that failed */
    int64_t last_kind;  /* kind of the last call that failed */
    int64_t without_log;/* whether the files of the log, in folders that end with -log, are excluded */
    int64_t calls_of[9];/* calls by kind, independent of `kinds` */
};

static struct control *control;
static char folder[PATH_MAX];
static size_t folder_length;
static int journal = -1;
static pthread_mutex_t journal_lock = PTHREAD_MUTEX_INITIALIZER;

static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_pwrite)(int, const void *, size_t, off64_t);
static int (*real_fsync)(int);
static int (*real_fdatasync)(int);
static int (*real_ftruncate)(int, off64_t);
static int (*real_open)(const char *, int, ...);
static int (*real_rename)(const char *, const char *);

__attribute__((constructor)) static void prepare(void) {
    real_write = dlsym(RTLD_NEXT, "write");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_fdatasync = dlsym(RTLD_NEXT, "fdatasync");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
    real_open = dlsym(RTLD_NEXT, "open64");
    real_rename = dlsym(RTLD_NEXT, "rename");
    const char *path = getenv("FAULTS_FOLDER");
    const char *file = getenv("FAULTS_CONTROL");
    if (!path || !file) return;
    snprintf(folder, sizeof folder, "%s/", path);
    folder_length = strlen(folder);
    int descriptor = real_open(file, O_RDWR | O_CLOEXEC);
    if (descriptor < 0) abort();
    void *map = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (map == MAP_FAILED) abort();
    close(descriptor);
    const char *log = getenv("FAULTS_JOURNAL");
    if (log && (journal = real_open(log, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644)) < 0) abort();
    control = map;
}

/* The path of a concerned file, relative to the folder. */
static int concerned_path(const char *path, char *name) {
    if (!control || strncmp(path, folder, folder_length) != 0) return 0;
    strcpy(name, path + folder_length);
    return 1;
}

static int concerned(int descriptor, char *name) {
    char link[64], path[PATH_MAX];
    if (!control) return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return concerned_path(path, name);
}

/* Whether this call must fail; errno is set then. */
static int fails(int kind, const char *name) {
    __atomic_add_fetch(&control->calls_of[kind], 1, __ATOMIC_SEQ_CST);
    if (!(__atomic_load_n(&control->kinds, __ATOMIC_SEQ_CST) & kind)) return 0;
    if (control->without_log && strstr(name, "-log/") != NULL) return 0;
    int64_t number = __atomic_add_fetch(&control->calls, 1, __ATOMIC_SEQ_CST);
    int64_t first = __atomic_load_n(&control->first, __ATOMIC_SEQ_CST);
    if (!first || number < first || number > __atomic_load_n(&control->last, __ATOMIC_SEQ_CST)) return 0;
    __atomic_add_fetch(&control->failures, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&control->last_kind, kind, __ATOMIC_SEQ_CST);
    errno = (int)control->error;
    return 1;
}

/* kind, length of the name, offset, length of the data; then name and data. */
static void note(int kind, const char *name, int64_t offset, const void *data, int64_t length) {
    if (journal < 0) return;
    int64_t head[4] = {kind, (int64_t)strlen(name), offset, length};
    struct iovec parts[3] = {
        {head, sizeof head}, {(void *)name, strlen(name)}, {(void *)data, data ? (size_t)length : 0}};
    if (writev(journal, parts, 3) < 0) abort();
}

static void begin(void) { if (journal >= 0) pthread_mutex_lock(&journal_lock); }
static void end(void) {
    int code = errno;
    if (journal >= 0) pthread_mutex_unlock(&journal_lock);
    errno = code;
}

ssize_t pwrite64(int descriptor, const void *data, size_t length, off64_t offset) {
    char name[PATH_MAX];
    if (!concerned(descriptor, name)) return real_pwrite(descriptor, data, length, offset);
    ssize_t result = -1;
    begin();
    if (!fails(WRITE, name)) {
        result = real_pwrite(descriptor, data, length, offset);
        if (result > 0) note(WRITE, name, offset, data, result);
    } else if (control->torn) {
        int code = errno;
        ssize_t written = real_pwrite(descriptor, data, length * (size_t)control->torn / 1000, offset);
        if (written > 0) note(WRITE, name, offset, data, written);
        errno = code;
    } else if (control->error == 0) {
        result = (ssize_t)length;
    }
    end();
    return result;
}

ssize_t pwrite(int descriptor, const void *data, size_t length, off_t offset) {
    return pwrite64(descriptor, data, length, offset);
}

ssize_t write(int descriptor, const void *data, size_t length) {
    char name[PATH_MAX];
    if (!concerned(descriptor, name)) return real_write(descriptor, data, length);
    if (fails(WRITE, name)) return -1;
    begin();
    off_t offset = lseek(descriptor, 0, SEEK_CUR);
    ssize_t result = real_write(descriptor, data, length);
    if (result > 0) note(WRITE, name, offset, data, result);
    end();
    return result;
}

static int synchronize(int (*real)(int), int descriptor) {
    char name[PATH_MAX];
    if (!concerned(descriptor, name)) return real(descriptor);
    int64_t delay = __atomic_load_n(&control->delay, __ATOMIC_SEQ_CST);
    if (delay > 0) usleep((useconds_t)delay);
    begin();
    int is_failing = fails(SYNC, name);
    int result = is_failing ? (control->error ? -1 : 0) : real(descriptor);
    if (result == 0 && !is_failing) note(SYNC, name, 0, NULL, 0);
    end();
    return result;
}

int fsync(int descriptor) { return synchronize(real_fsync, descriptor); }
int fdatasync(int descriptor) { return synchronize(real_fdatasync, descriptor); }

int ftruncate64(int descriptor, off64_t length) {
    char name[PATH_MAX];
    if (!concerned(descriptor, name)) return real_ftruncate(descriptor, length);
    begin();
    int result = fails(TRUNCATE, name) ? -1 : real_ftruncate(descriptor, length);
    if (result == 0) note(TRUNCATE, name, length, NULL, 0);
    end();
    return result;
}

int ftruncate(int descriptor, off_t length) { return ftruncate64(descriptor, length); }

int rename(const char *path, const char *new_path) {
    char name[PATH_MAX], new_name[PATH_MAX];
    if (!concerned_path(path, name) || !concerned_path(new_path, new_name)) return real_rename(path, new_path);
    begin();
    int result = real_rename(path, new_path);
    if (result == 0) note(RENAME, name, 0, new_name, (int64_t)strlen(new_name));
    end();
    return result;
}

int open64(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & (O_CREAT | O_TMPFILE)) {
        va_list arguments;
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    char name[PATH_MAX];
    /* The server is started with an absolute path of its folder. */
    if (control && concerned_path(path, name) && fails(OPEN, name)) return -1;
    return real_open(path, flags, mode);
}

int open(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & (O_CREAT | O_TMPFILE)) {
        va_list arguments;
        va_start(arguments, flags);
        mode = va_arg(arguments, mode_t);
        va_end(arguments);
    }
    return open64(path, flags, mode);
}
