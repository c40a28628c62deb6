#ifndef HEARTH_LOAD_CONNECTION_H
#define HEARTH_LOAD_CONNECTION_H

#include <nghttp2/nghttp2.h>
#include <stdbool.h>

#include "include/load.h"

// What all connections of a run share.
struct run {
    const struct load_settings *settings;
    struct load_result *result;
    int epoll;
    uint64_t count_from;
    uint64_t deadline;
    uint64_t next_number;
    // Requests without an answer.
    uint64_t open;
    // The time of the last answer, and of the last bytes.
    uint64_t answered_at;
    uint64_t received_at;
};

struct bytes {
    uint8_t *base;
    size_t count;
    size_t capacity;
};

// One request in flight.
struct stream {
    // 0: none.
    uint32_t id;
    uint64_t sent_at;
    // What the server's windows did not let pass.
    struct bytes rest;
    size_t rest_start;
    int64_t send_window;
    uint32_t unacknowledged;
    // The answer.
    int http_status;
    int grpc_status;
    uint32_t messages;
    bool is_wrong;
    uint8_t prefix[5];
    uint32_t prefix_count;
    uint32_t message_left;
    // Kept only for a check.
    struct bytes message;
    char text[160];
};

struct connection {
    struct run *run;
    int descriptor;
    bool is_waiting_to_write;
    uint32_t next_id;
    struct stream *streams;
    struct bytes input;
    struct bytes output;
    size_t output_start;
    int64_t send_window;
    int64_t stream_window;
    uint32_t unacknowledged;
    nghttp2_hd_deflater *deflater;
    nghttp2_hd_inflater *inflater;
    // The block of fields of a request, once it leaves the compression table as it is.
    struct bytes head;
    bool is_head_settled;
    // A block that continues, its stream, and whether the answer ends with it.
    struct bytes block;
    uint32_t block_stream;
    bool ends_with_block;
};

uint64_t load_now(void);
// Ends the run. Only the first reason is kept.
void load_fail(struct run *run, const char *format, ...) __attribute__((format(printf, 2, 3)));
bool load_has_failed(const struct run *run);
bool load_reserve(struct bytes *bytes, size_t count);
bool load_append(struct bytes *bytes, const void *from, size_t count);

// Prepares a connection whose socket is connected: the preface and the first requests are in its output.
bool load_connection_begin(struct connection *connection, struct run *run, int descriptor, uint64_t now);
void load_connection_end(struct connection *connection);
// Reads what is there, and sends the next requests.
void load_connection_read(struct connection *connection);
void load_connection_write(struct connection *connection);

// Requests: request.c.
void load_frame_head(uint8_t *to, size_t count, uint8_t type, uint8_t flags, uint32_t stream);
void load_request_next(struct connection *connection, struct stream *stream, uint64_t now);
// Sends what windows let pass now.
void load_request_pump(struct connection *connection);

// Answers: answer.c.
void load_answer_block(struct connection *connection, struct stream *stream, const uint8_t *bytes, size_t count);
void load_answer_data(struct run *run, struct stream *stream, const uint8_t *bytes, size_t count);
void load_answer_end(struct connection *connection, struct stream *stream, uint64_t now, const char *failure);

#endif
