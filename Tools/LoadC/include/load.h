#ifndef HEARTH_LOAD_H
#define HEARTH_LOAD_H

#include <stddef.h>
#include <stdint.h>

// A load generator for gRPC over HTTP/2 without TLS: one thread, epoll, a fixed number of requests in flight. It is in
// C, and makes no object and no copy for a request beyond its bytes in the buffer of a connection, because it shares
// the machine with the server that is measured.

struct load_field {
    const uint8_t *name;
    size_t name_count;
    const uint8_t *value;
    size_t value_count;
};

// Gives the message of the request with a number. The bytes are copied before the next call.
typedef size_t (*load_request)(void *context, uint64_t number, const uint8_t **bytes);

// Is given each message of an answer. Returns 0 when it is wrong.
typedef int (*load_check)(void *context, const uint8_t *bytes, size_t count);

struct load_settings {
    const char *host;
    uint16_t port;
    uint32_t connections;
    // Requests in flight on each connection.
    uint32_t streams;
    // Of every request, pseudo fields first.
    const struct load_field *fields;
    size_t fields_count;
    load_request request;
    // Null: the content of messages is not looked at.
    load_check check;
    void *context;
    // An answer is right when it has so many messages...
    uint32_t messages;
    // ...that begin with this byte; 0: with any.
    uint8_t message_tag;
    uint64_t requests_max;
    // Answers that arrive before are not counted.
    uint64_t warm_up_nanoseconds;
    // After the warm-up; 0: the run ends with its requests.
    uint64_t run_nanoseconds;
};

struct load_result {
    // Right answers while answers were counted, and wrong ones.
    uint64_t count;
    uint64_t errors;
    // Answers of the whole run.
    uint64_t all;
    double seconds;
    // CPU time of the thread in the whole run.
    double processor_seconds;
    // Of the right answers, in microseconds, in the order of their arrival.
    uint32_t *latencies;
    size_t latencies_capacity;
    // What was wrong with the first wrong answer; null: nothing.
    char *error;
    // Why the run broke off; null: it did not.
    char *failure;
};

// Blocks until the run is over. The result is to be cleared in any case.
void load_run(const struct load_settings *settings, struct load_result *result);
void load_clear(struct load_result *result);

// CPU time, user and system: of the calling thread, of the process, of ended processes that it has started.
double load_thread_seconds(void);
double load_process_seconds(void);
double load_children_seconds(void);

#endif
