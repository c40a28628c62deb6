#define _GNU_SOURCE
#include "ccrash.h"

#include <arpa/inet.h>
#include <execinfo.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

// In C, because only functions that are safe in a signal handler may be called there: no allocation, no lock, no Swift.

enum { ACTIVITIES_MAX = 256, FRAMES_MAX = 64, LINE_MAX_BYTES = 1024 };

extern void __asan_init(void) __attribute__((weak));
extern void __tsan_init(void) __attribute__((weak));

static _Atomic(hearth_activity *) activities[ACTIVITIES_MAX];
static int is_json;
static atomic_flag is_reporting = ATOMIC_FLAG_INIT;

hearth_activity *hearth_activity_new(void) {
    hearth_activity *activity = calloc(1, sizeof *activity);
    if (!activity) return NULL;
    activity->thread = (pid_t)syscall(SYS_gettid);
    activity->descriptor = -1;
    activity->request_descriptor = -1;
    for (int index = 0; index < ACTIVITIES_MAX; index++) {
        hearth_activity *none = NULL;
        if (atomic_compare_exchange_strong(&activities[index], &none, activity)) return activity;
    }
    free(activity);
    return NULL;
}

void hearth_activity_free(hearth_activity *activity) {
    if (!activity) return;
    for (int index = 0; index < ACTIVITIES_MAX; index++) {
        hearth_activity *found = activity;
        if (atomic_compare_exchange_strong(&activities[index], &found, NULL)) break;
    }
    free(activity);
}

typedef struct {
    char bytes[LINE_MAX_BYTES];
    size_t count;
} line;

static void put(line *to, char byte) {
    // Two bytes are kept for the end of a JSON object, and one for that of the line.
    if (to->count < sizeof to->bytes - 4) to->bytes[to->count++] = byte;
}

static void put_string(line *to, const char *string) {
    while (*string) put(to, *string++);
}

static void put_number(line *to, uint64_t number, unsigned base, int width) {
    char digits[24];
    int count = 0;
    do {
        digits[count++] = "0123456789abcdef"[number % base];
        number /= base;
    } while (number > 0 || count < width);
    while (count > 0) put(to, digits[--count]);
}

// Bytes of a client: what is not printable ASCII is escaped.
static void put_bytes(line *to, const uint8_t *bytes, size_t count) {
    for (size_t index = 0; index < count; index++) {
        uint8_t byte = bytes[index];
        if (byte == '"' || byte == '\\') {
            put(to, '\\');
            put(to, (char)byte);
        } else if (byte < 0x20 || byte > 0x7e) {
            put_string(to, "\\u00");
            put_number(to, byte, 16, 2);
        } else {
            put(to, (char)byte);
        }
    }
}

// RFC 3339 with milliseconds. The algorithm: Howard Hinnant, "chrono-Compatible Low-Level Date Algorithms", civil_from_days.
static void put_time(line *to) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t days = now.tv_sec / 86400 + 719468, rest = now.tv_sec % 86400;
    int64_t era = days / 146097, day_of_era = days % 146097;
    int64_t year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36524 - day_of_era / 146096) / 365;
    int64_t day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    int64_t month = (5 * day_of_year + 2) / 153;
    int64_t day = day_of_year - (153 * month + 2) / 5 + 1;
    month += month < 10 ? 3 : -9;
    int64_t year = year_of_era + era * 400 + (month <= 2);
    put_number(to, (uint64_t)year, 10, 4);
    put(to, '-');
    put_number(to, (uint64_t)month, 10, 2);
    put(to, '-');
    put_number(to, (uint64_t)day, 10, 2);
    put(to, 'T');
    put_number(to, (uint64_t)(rest / 3600), 10, 2);
    put(to, ':');
    put_number(to, (uint64_t)(rest / 60 % 60), 10, 2);
    put(to, ':');
    put_number(to, (uint64_t)(rest % 60), 10, 2);
    put(to, '.');
    put_number(to, (uint64_t)now.tv_nsec / 1000000, 10, 3);
    put(to, 'Z');
}

static void begin(line *to, const char *message) {
    to->count = 0;
    if (is_json) {
        put_string(to, "{\"time\":\"");
        put_time(to);
        put_string(to, "\",\"level\":\"error\",\"message\":\"");
        put_string(to, message);
        put(to, '"');
    } else {
        put_time(to);
        put_string(to, " error   ");
        put_string(to, message);
    }
}

static void field(line *to, const char *name) {
    put_string(to, is_json ? ",\"" : " ");
    put_string(to, name);
    put_string(to, is_json ? "\":\"" : "=\"");
}

static void text_field(line *to, const char *name, const char *value) {
    field(to, name);
    put_bytes(to, (const uint8_t *)value, strlen(value));
    put(to, '"');
}

static void end(line *to) {
    // `put` has left space.
    if (is_json) to->bytes[to->count++] = '}';
    to->bytes[to->count++] = '\n';
    for (size_t done = 0; done < to->count;) {
        ssize_t count = write(STDERR_FILENO, to->bytes + done, to->count - done);
        if (count <= 0) return;
        done += (size_t)count;
    }
}

static const char *name_of(int signal) {
    switch (signal) {
    case SIGILL: return "SIGILL";
    case SIGTRAP: return "SIGTRAP";
    case SIGABRT: return "SIGABRT";
    case SIGBUS: return "SIGBUS";
    case SIGFPE: return "SIGFPE";
    case SIGSEGV: return "SIGSEGV";
    default: return "?";
    }
}

static void put_peer(line *to, const char *name, int descriptor) {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
        struct sockaddr_storage storage;
    } address;
    socklen_t size = sizeof address;
    char string[INET6_ADDRSTRLEN];
    if (descriptor < 0 || getpeername(descriptor, &address.any, &size) != 0) return;
    const void *bytes = address.any.sa_family == AF_INET6 ? (const void *)&address.v6.sin6_addr : &address.v4.sin_addr;
    if (address.any.sa_family != AF_INET && address.any.sa_family != AF_INET6) return;
    if (!inet_ntop(address.any.sa_family, bytes, string, sizeof string)) return;
    field(to, name);
    put_string(to, string);
    put(to, ':');
    put_number(to, ntohs(address.any.sa_family == AF_INET6 ? address.v6.sin6_port : address.v4.sin_port), 10, 1);
    put(to, '"');
}

static void put_activity(line *to, const hearth_activity *activity) {
    static const char *const works[] = {"waits", "reads from a connection", "sends to a connection", "runs a job", "runs a timer"};
    uint32_t work = activity->work, length = activity->request_length;
    text_field(to, "activity", works[work < sizeof works / sizeof *works ? work : 0]);
    if (work == HEARTH_WORK_READ || work == HEARTH_WORK_SEND) put_peer(to, "client", activity->descriptor);
    if (length > 0) {
        field(to, "lastRequest");
        put_bytes(to, activity->request, length < sizeof activity->request ? length : sizeof activity->request);
        put(to, '"');
        put_peer(to, "lastClient", activity->request_descriptor);
    }
}

static void report(int signal, const siginfo_t *information) {
    pid_t thread = (pid_t)syscall(SYS_gettid);
    char name[17] = {0};
    prctl(PR_GET_NAME, name);
    line text;
    begin(&text, "a fault ends the process");
    text_field(&text, "signal", name_of(signal));
    text_field(&text, "thread", name);
    if (information->si_code <= 0) {
        // Sent by a process, as abort() does.
        field(&text, "sender");
        put_number(&text, (uint64_t)information->si_pid, 10, 1);
        put(&text, '"');
    }
    for (int index = 0; index < ACTIVITIES_MAX; index++) {
        const hearth_activity *activity = atomic_load(&activities[index]);
        if (activity && activity->thread == thread) put_activity(&text, activity);
    }
    end(&text);
    for (int index = 0; index < ACTIVITIES_MAX; index++) {
        const hearth_activity *activity = atomic_load(&activities[index]);
        if (!activity || activity->thread == thread) continue;
        begin(&text, "another thread");
        field(&text, "thread");
        put_number(&text, (uint64_t)activity->thread, 10, 1);
        put(&text, '"');
        put_activity(&text, activity);
        end(&text);
    }
    void *frames[FRAMES_MAX];
    int count = backtrace(frames, FRAMES_MAX);
    if (!is_json) {
        backtrace_symbols_fd(frames, count, STDERR_FILENO);
        return;
    }
    begin(&text, "stack");
    field(&text, "addresses");
    for (int index = 0; index < count; index++) {
        if (index > 0) put(&text, ' ');
        put_string(&text, "0x");
        put_number(&text, (uint64_t)(uintptr_t)frames[index], 16, 1);
    }
    put(&text, '"');
    end(&text);
}

static void handle(int number, siginfo_t *information, void *context) {
    (void)context;
    // A second fault, also one of the report, ends the process at once.
    if (!atomic_flag_test_and_set(&is_reporting)) report(number, information);
    signal(number, SIG_DFL);
    // Delivered when the handler returns.
    raise(number);
}

void hearth_crash_report(int as_json) {
    // Sanitizers report more.
    if (__asan_init || __tsan_init) return;
    is_json = as_json;
    // The first call loads a library.
    void *frames[1];
    backtrace(frames, 1);
    static const int signals[] = {SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV};
    for (size_t index = 0; index < sizeof signals / sizeof *signals; index++) {
        struct sigaction action = {0};
        action.sa_sigaction = handle;
        action.sa_flags = SA_SIGINFO | SA_ONSTACK;
        sigemptyset(&action.sa_mask);
        sigaction(signals[index], &action, NULL);
    }
}
