#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "connection.h"

enum { frame_head = 9, message_head = 5, frame_max = 16384, fields_max = 64 };

void load_frame_head(uint8_t *to, size_t count, uint8_t type, uint8_t flags, uint32_t stream) {
    to[0] = (uint8_t)(count >> 16);
    to[1] = (uint8_t)(count >> 8);
    to[2] = (uint8_t)count;
    to[3] = type;
    to[4] = flags;
    stream = htonl(stream);
    memcpy(to + 5, &stream, 4);
}

// The block of fields. Once a block adds nothing to the compression table, each further one has the same bytes.
static bool make_head(struct connection *connection) {
    const struct load_settings *settings = connection->run->settings;
    nghttp2_nv fields[fields_max];
    size_t size = 0;
    if (settings->fields_count > fields_max) return false;
    for (size_t index = 0; index < settings->fields_count; index++) {
        const struct load_field *field = &settings->fields[index];
        fields[index] = (nghttp2_nv){(uint8_t *)field->name, (uint8_t *)field->value, field->name_count,
                                     field->value_count, NGHTTP2_NV_FLAG_NONE};
        size += field->name_count + field->value_count + 32;
    }
    size_t before = nghttp2_hd_deflate_get_dynamic_table_size(connection->deflater);
    size_t bound = nghttp2_hd_deflate_bound(connection->deflater, fields, settings->fields_count);
    connection->head.count = 0;
    if (bound > frame_max || !load_reserve(&connection->head, bound)) return false;
    ssize_t count = nghttp2_hd_deflate_hd(connection->deflater, connection->head.base, bound, fields,
                                          settings->fields_count);
    if (count < 0) return false;
    connection->head.count = (size_t)count;
    // A table that has space for all fields drops none, so its size tells whether it changed.
    connection->is_head_settled = before == nghttp2_hd_deflate_get_dynamic_table_size(connection->deflater) &&
                                  before + size <= nghttp2_hd_deflate_get_max_dynamic_table_size(connection->deflater);
    return true;
}

static bool append_data(struct connection *connection, struct stream *stream, const uint8_t *bytes, size_t count,
                        bool is_last) {
    uint8_t head[frame_head];
    load_frame_head(head, count, NGHTTP2_DATA, is_last ? NGHTTP2_FLAG_END_STREAM : 0, stream->id);
    connection->send_window -= (int64_t)count;
    stream->send_window -= (int64_t)count;
    return load_append(&connection->output, head, sizeof head) && load_append(&connection->output, bytes, count);
}

static bool pump(struct connection *connection, struct stream *stream) {
    while (stream->rest_start < stream->rest.count) {
        size_t left = stream->rest.count - stream->rest_start;
        int64_t window = connection->send_window < stream->send_window ? connection->send_window : stream->send_window;
        if (window <= 0) return true;
        size_t count = left < frame_max ? left : frame_max;
        if ((int64_t)count > window) count = (size_t)window;
        if (!append_data(connection, stream, stream->rest.base + stream->rest_start, count, count == left)) return false;
        stream->rest_start += count;
    }
    return true;
}

void load_request_pump(struct connection *connection) {
    for (uint32_t index = 0; index < connection->run->settings->streams; index++) {
        struct stream *stream = &connection->streams[index];
        if (stream->id != 0 && !pump(connection, stream)) load_fail(connection->run, "no memory");
    }
}

static bool append_request(struct connection *connection, struct stream *stream, const uint8_t *bytes, size_t count) {
    if (!connection->is_head_settled && !make_head(connection)) return false;
    uint8_t head[frame_head];
    load_frame_head(head, connection->head.count, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, stream->id);
    if (!load_append(&connection->output, head, sizeof head) ||
        !load_append(&connection->output, connection->head.base, connection->head.count))
        return false;
    uint8_t prefix[frame_head + message_head];
    size_t total = message_head + count;
    uint32_t length = htonl((uint32_t)count);
    prefix[frame_head] = 0;
    memcpy(prefix + frame_head + 1, &length, 4);
    if (total <= frame_max && (int64_t)total <= connection->send_window && (int64_t)total <= stream->send_window) {
        load_frame_head(prefix, total, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, stream->id);
        connection->send_window -= (int64_t)total;
        return load_append(&connection->output, prefix, sizeof prefix) &&
               load_append(&connection->output, bytes, count);
    }
    return load_append(&stream->rest, prefix + frame_head, message_head) &&
           load_append(&stream->rest, bytes, count) && pump(connection, stream);
}

void load_request_next(struct connection *connection, struct stream *stream, uint64_t now) {
    struct run *run = connection->run;
    stream->id = 0;
    if (now >= run->deadline || run->next_number >= run->settings->requests_max || load_has_failed(run)) return;
    stream->id = connection->next_id;
    connection->next_id += 2;
    stream->sent_at = now;
    stream->rest.count = 0;
    stream->rest_start = 0;
    stream->send_window = connection->stream_window;
    stream->unacknowledged = 0;
    stream->http_status = 0;
    stream->grpc_status = -1;
    stream->messages = 0;
    stream->is_wrong = false;
    stream->prefix_count = 0;
    stream->message_left = 0;
    stream->text[0] = 0;
    run->open += 1;
    const uint8_t *bytes = NULL;
    size_t count = run->settings->request(run->settings->context, run->next_number, &bytes);
    run->next_number += 1;
    if (!append_request(connection, stream, bytes, count)) load_fail(run, "a request cannot be made");
}
