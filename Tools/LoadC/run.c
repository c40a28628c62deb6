#define _GNU_SOURCE
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "connection.h"

// A server that sends nothing for so long is given up.
static const uint64_t silence_max = 600ull * 1000000000ull;

enum { events_max = 64 };

uint64_t load_now(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static double processor_seconds_of(int whose) {
    struct rusage usage;
    getrusage(whose, &usage);
    return (double)usage.ru_utime.tv_sec + (double)usage.ru_stime.tv_sec +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

double load_thread_seconds(void) { return processor_seconds_of(RUSAGE_THREAD); }
double load_process_seconds(void) { return processor_seconds_of(RUSAGE_SELF); }
double load_children_seconds(void) { return processor_seconds_of(RUSAGE_CHILDREN); }

void load_fail(struct run *run, const char *format, ...) {
    if (run->result->failure != NULL) return;
    char text[384];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    run->result->failure = strdup(text);
}

bool load_has_failed(const struct run *run) { return run->result->failure != NULL; }

static int connect_to(struct run *run) {
    char port[8];
    snprintf(port, sizeof port, "%u", run->settings->port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    int error = getaddrinfo(run->settings->host, port, &hints, &list);
    const char *reason = error == 0 ? NULL : gai_strerror(error);
    int descriptor = -1;
    for (struct addrinfo *address = list; address != NULL && descriptor < 0; address = address->ai_next) {
        descriptor = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (descriptor >= 0 && connect(descriptor, address->ai_addr, address->ai_addrlen) == 0) break;
        reason = strerror(errno);
        if (descriptor >= 0) close(descriptor);
        descriptor = -1;
    }
    if (list != NULL) freeaddrinfo(list);
    if (descriptor < 0) {
        load_fail(run, "Cannot reach %s:%s: %s.", run->settings->host, port, reason == NULL ? "no address" : reason);
        return -1;
    }
    int one = 1;
    setsockopt(descriptor, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return descriptor;
}

// The loop: until every request has its answer.
static void serve(struct run *run) {
    struct epoll_event events[events_max];
    run->received_at = load_now();
    while (run->open > 0 && !load_has_failed(run)) {
        int count = epoll_wait(run->epoll, events, events_max, 1000);
        for (int index = 0; index < count && !load_has_failed(run); index++) {
            struct connection *connection = events[index].data.ptr;
            if (events[index].events & EPOLLOUT) load_connection_write(connection);
            if (events[index].events & ~EPOLLOUT) load_connection_read(connection);
        }
        if (count == 0 && load_now() - run->received_at > silence_max) load_fail(run, "The server sends nothing.");
    }
}

void load_run(const struct load_settings *settings, struct load_result *result) {
    *result = (struct load_result){0};
    struct run run = {.settings = settings, .result = result, .epoll = epoll_create1(EPOLL_CLOEXEC)};
    struct connection *connections = calloc(settings->connections, sizeof *connections);
    if (connections == NULL || run.epoll < 0) load_fail(&run, "no memory");
    // All connections are there before the first request.
    for (uint32_t index = 0; connections != NULL && index < settings->connections; index++) {
        connections[index].run = &run;
        connections[index].descriptor = load_has_failed(&run) ? -1 : connect_to(&run);
    }
    double processor_seconds = load_thread_seconds();
    uint64_t start = load_now();
    run.count_from = start + settings->warm_up_nanoseconds;
    run.deadline = settings->run_nanoseconds == 0 ? UINT64_MAX : run.count_from + settings->run_nanoseconds;
    for (uint32_t index = 0; index < settings->connections && !load_has_failed(&run); index++)
        if (!load_connection_begin(&connections[index], &run, connections[index].descriptor, start))
            load_fail(&run, "a connection cannot be set up");
    serve(&run);
    result->processor_seconds = load_thread_seconds() - processor_seconds;
    uint64_t end = run.answered_at < run.deadline ? run.answered_at : run.deadline;
    result->seconds = end > run.count_from ? (double)(end - run.count_from) / 1e9 : 0;
    for (uint32_t index = 0; connections != NULL && index < settings->connections; index++)
        load_connection_end(&connections[index]);
    free(connections);
    if (run.epoll >= 0) close(run.epoll);
}

void load_clear(struct load_result *result) {
    free(result->latencies);
    free(result->error);
    free(result->failure);
    *result = (struct load_result){0};
}
