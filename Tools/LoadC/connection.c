#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "connection.h"

enum {
    frame_head = 9,
    frame_max = 16384,
    input_bytes = 256 * 1024,
    first_window = 65535,
    stream_window = 1024 * 1024,
    connection_window = 16 * 1024 * 1024,
};

bool load_reserve(struct bytes *bytes, size_t count) {
    if (bytes->capacity - bytes->count >= count) return true;
    size_t capacity = bytes->capacity == 0 ? 4096 : bytes->capacity;
    while (capacity - bytes->count < count) capacity *= 2;
    uint8_t *larger = realloc(bytes->base, capacity);
    if (larger == NULL) return false;
    bytes->base = larger;
    bytes->capacity = capacity;
    return true;
}

bool load_append(struct bytes *bytes, const void *from, size_t count) {
    if (count == 0) return true;
    if (!load_reserve(bytes, count)) return false;
    memcpy(bytes->base + bytes->count, from, count);
    bytes->count += count;
    return true;
}

static uint32_t big_endian(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

static void append_number(uint8_t *to, uint32_t number) {
    for (int index = 0; index < 4; index++) to[index] = (uint8_t)(number >> (24 - 8 * index));
}

static bool append_window(struct connection *connection, uint32_t stream, uint32_t count) {
    uint8_t frame[frame_head + 4];
    load_frame_head(frame, 4, NGHTTP2_WINDOW_UPDATE, 0, stream);
    append_number(frame + frame_head, count);
    return load_append(&connection->output, frame, sizeof frame);
}

static bool append_preface(struct connection *connection) {
    static const struct {
        uint16_t identifier;
        uint32_t value;
    } settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0}, {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, stream_window}};
    uint8_t frame[frame_head + sizeof settings / sizeof *settings * 6];
    load_frame_head(frame, sizeof frame - frame_head, NGHTTP2_SETTINGS, 0, 0);
    for (size_t index = 0; index < sizeof settings / sizeof *settings; index++) {
        uint8_t *to = frame + frame_head + 6 * index;
        to[0] = 0;
        to[1] = (uint8_t)settings[index].identifier;
        append_number(to + 2, settings[index].value);
    }
    return load_append(&connection->output, NGHTTP2_CLIENT_MAGIC, NGHTTP2_CLIENT_MAGIC_LEN) &&
           load_append(&connection->output, frame, sizeof frame) &&
           append_window(connection, 0, connection_window - first_window);
}

bool load_connection_begin(struct connection *connection, struct run *run, int descriptor, uint64_t now) {
    connection->run = run;
    connection->descriptor = descriptor;
    connection->next_id = 1;
    connection->send_window = first_window;
    connection->stream_window = first_window;
    connection->streams = calloc(run->settings->streams, sizeof *connection->streams);
    if (connection->streams == NULL || nghttp2_hd_deflate_new(&connection->deflater, 4096) != 0 ||
        nghttp2_hd_inflate_new(&connection->inflater) != 0 || !append_preface(connection) ||
        !load_reserve(&connection->input, input_bytes))
        return false;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    if (epoll_ctl(run->epoll, EPOLL_CTL_ADD, descriptor, &event) != 0) return false;
    for (uint32_t index = 0; index < run->settings->streams; index++)
        load_request_next(connection, &connection->streams[index], now);
    load_connection_write(connection);
    return true;
}

void load_connection_end(struct connection *connection) {
    if (connection->streams != NULL) {
        for (uint32_t index = 0; index < connection->run->settings->streams; index++) {
            free(connection->streams[index].rest.base);
            free(connection->streams[index].message.base);
        }
        free(connection->streams);
    }
    free(connection->input.base);
    free(connection->output.base);
    free(connection->head.base);
    free(connection->block.base);
    // A connection that was not made has none.
    if (connection->deflater != NULL) nghttp2_hd_deflate_del(connection->deflater);
    if (connection->inflater != NULL) nghttp2_hd_inflate_del(connection->inflater);
    if (connection->descriptor >= 0) close(connection->descriptor);
}

static struct stream *stream_of(struct connection *connection, uint32_t id) {
    for (uint32_t index = 0; index < connection->run->settings->streams; index++)
        if (connection->streams[index].id == id && id != 0) return &connection->streams[index];
    return NULL;
}

// Cuts off what a padded frame has around its content. False: the frame is wrong.
static bool remove_padding(const uint8_t **bytes, size_t *count, uint8_t flags) {
    size_t before = 0, after = 0;
    if (flags & NGHTTP2_FLAG_PADDED) {
        if (*count < 1) return false;
        before = 1;
        after = (*bytes)[0];
    }
    if (before + after > *count) return false;
    *bytes += before;
    *count -= before + after;
    return true;
}

static void received_data(struct connection *connection, uint32_t id, uint8_t flags, const uint8_t *bytes,
                          size_t count, uint64_t now) {
    struct run *run = connection->run;
    struct stream *stream = stream_of(connection, id);
    connection->unacknowledged += (uint32_t)count;
    if (stream != NULL) stream->unacknowledged += (uint32_t)count;
    if (connection->unacknowledged >= connection_window / 2) {
        if (!append_window(connection, 0, connection->unacknowledged)) return load_fail(run, "no memory");
        connection->unacknowledged = 0;
    }
    if (stream == NULL) return;
    if (!remove_padding(&bytes, &count, flags)) return load_fail(run, "a frame of data is wrong");
    load_answer_data(run, stream, bytes, count);
    if (flags & NGHTTP2_FLAG_END_STREAM) return load_answer_end(connection, stream, now, NULL);
    if (stream->unacknowledged >= stream_window / 2) {
        if (!append_window(connection, id, stream->unacknowledged)) return load_fail(run, "no memory");
        stream->unacknowledged = 0;
    }
}

static void received_block(struct connection *connection, uint32_t id, const uint8_t *bytes, size_t count,
                           bool ends_stream, uint64_t now) {
    struct stream *stream = stream_of(connection, id);
    load_answer_block(connection, stream, bytes, count);
    if (stream == NULL || !ends_stream) return;
    if (stream->rest_start < stream->rest.count) {
        // An answer before the request's end: the rest is not sent.
        uint8_t frame[frame_head + 4];
        load_frame_head(frame, 4, NGHTTP2_RST_STREAM, 0, id);
        append_number(frame + frame_head, NGHTTP2_CANCEL);
        if (!load_append(&connection->output, frame, sizeof frame)) load_fail(connection->run, "no memory");
    }
    load_answer_end(connection, stream, now, NULL);
}

static void received_head(struct connection *connection, uint32_t id, uint8_t type, uint8_t flags,
                          const uint8_t *bytes, size_t count, uint64_t now) {
    struct run *run = connection->run;
    if (type == NGHTTP2_HEADERS) {
        if (!remove_padding(&bytes, &count, flags)) return load_fail(run, "a frame of fields is wrong");
        if (flags & NGHTTP2_FLAG_PRIORITY) {
            if (count < 5) return load_fail(run, "a frame of fields is wrong");
            bytes += 5;
            count -= 5;
        }
        bool ends_stream = flags & NGHTTP2_FLAG_END_STREAM;
        if (flags & NGHTTP2_FLAG_END_HEADERS) return received_block(connection, id, bytes, count, ends_stream, now);
        connection->block.count = 0;
        connection->block_stream = id;
        connection->ends_with_block = ends_stream;
    }
    if (!load_append(&connection->block, bytes, count)) return load_fail(run, "no memory");
    if (flags & NGHTTP2_FLAG_END_HEADERS)
        received_block(connection, connection->block_stream, connection->block.base, connection->block.count,
                       connection->ends_with_block, now);
}

static void received_settings(struct connection *connection, uint8_t flags, const uint8_t *bytes, size_t count) {
    if (flags & NGHTTP2_FLAG_ACK) return;
    for (; count >= 6; bytes += 6, count -= 6) {
        uint32_t value = big_endian(bytes + 2);
        switch (bytes[0] << 8 | bytes[1]) {
        case NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE:
            for (uint32_t index = 0; index < connection->run->settings->streams; index++)
                connection->streams[index].send_window += (int64_t)value - connection->stream_window;
            connection->stream_window = value;
            break;
        case NGHTTP2_SETTINGS_HEADER_TABLE_SIZE:
            // The next block announces it.
            if (value < 4096) {
                nghttp2_hd_deflate_change_table_size(connection->deflater, value);
                connection->is_head_settled = false;
            }
            break;
        default: break;
        }
    }
    uint8_t frame[frame_head];
    load_frame_head(frame, 0, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0);
    if (!load_append(&connection->output, frame, sizeof frame)) return load_fail(connection->run, "no memory");
    load_request_pump(connection);
}

static void received_window(struct connection *connection, uint32_t id, const uint8_t *bytes, size_t count) {
    if (count != 4) return load_fail(connection->run, "a frame of windows is wrong");
    uint32_t more = big_endian(bytes) & 0x7FFFFFFF;
    struct stream *stream = stream_of(connection, id);
    if (id == 0) connection->send_window += more;
    if (stream != NULL) stream->send_window += more;
    load_request_pump(connection);
}

static void received_frame(struct connection *connection, const uint8_t *head, const uint8_t *bytes, size_t count,
                           uint64_t now) {
    uint8_t type = head[3], flags = head[4];
    uint32_t id = big_endian(head + 5) & 0x7FFFFFFF;
    struct stream *stream;
    switch (type) {
    case NGHTTP2_DATA: return received_data(connection, id, flags, bytes, count, now);
    case NGHTTP2_HEADERS:
    case NGHTTP2_CONTINUATION: return received_head(connection, id, type, flags, bytes, count, now);
    case NGHTTP2_SETTINGS: return received_settings(connection, flags, bytes, count);
    case NGHTTP2_WINDOW_UPDATE: return received_window(connection, id, bytes, count);
    case NGHTTP2_RST_STREAM:
        stream = stream_of(connection, id);
        if (stream != NULL) load_answer_end(connection, stream, now, "the stream was reset");
        return;
    case NGHTTP2_GOAWAY: return load_fail(connection->run, "The server closes a connection.");
    case NGHTTP2_PING:
        if (flags & NGHTTP2_FLAG_ACK || count != 8) return;
        uint8_t frame[frame_head + 8];
        load_frame_head(frame, 8, NGHTTP2_PING, NGHTTP2_FLAG_ACK, 0);
        memcpy(frame + frame_head, bytes, 8);
        if (!load_append(&connection->output, frame, sizeof frame)) load_fail(connection->run, "no memory");
        return;
    case NGHTTP2_PUSH_PROMISE: return load_fail(connection->run, "The server pushes.");
    default: return;
    }
}

void load_connection_read(struct connection *connection) {
    struct bytes *input = &connection->input;
    ssize_t received =
        recv(connection->descriptor, input->base + input->count, input->capacity - input->count, MSG_DONTWAIT);
    if (received < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (received <= 0) return load_fail(connection->run, "The server has closed a connection.");
    // One look at the clock for all that has arrived: the next requests count from here, too.
    uint64_t now = load_now();
    connection->run->received_at = now;
    input->count += (size_t)received;
    size_t start = 0;
    while (input->count - start >= frame_head) {
        const uint8_t *head = input->base + start;
        size_t count = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        if (count > frame_max) return load_fail(connection->run, "a frame is too long");
        if (input->count - start < frame_head + count) break;
        received_frame(connection, head, head + frame_head, count, now);
        start += frame_head + count;
    }
    memmove(input->base, input->base + start, input->count - start);
    input->count -= start;
    load_connection_write(connection);
}

void load_connection_write(struct connection *connection) {
    struct bytes *output = &connection->output;
    while (connection->output_start < output->count) {
        ssize_t sent = send(connection->descriptor, output->base + connection->output_start,
                            output->count - connection->output_start, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno == EAGAIN) break;
        if (sent < 0) return load_fail(connection->run, "The server has closed a connection.");
        connection->output_start += (size_t)sent;
    }
    bool is_waiting = connection->output_start < output->count;
    if (!is_waiting) {
        output->count = 0;
        connection->output_start = 0;
    }
    if (is_waiting == connection->is_waiting_to_write) return;
    connection->is_waiting_to_write = is_waiting;
    struct epoll_event event = {.events = EPOLLIN | (is_waiting ? EPOLLOUT : 0), .data.ptr = connection};
    epoll_ctl(connection->run->epoll, EPOLL_CTL_MOD, connection->descriptor, &event);
}
