#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "connection.h"

static bool is(const uint8_t *bytes, size_t count, const char *text, size_t text_count) {
    return count == text_count && memcmp(bytes, text, count) == 0;
}

static int number(const uint8_t *bytes, size_t count) {
    int value = 0;
    if (count == 0 || count > 3) return -1;
    for (size_t index = 0; index < count; index++) {
        if (bytes[index] < '0' || bytes[index] > '9') return -1;
        value = value * 10 + (bytes[index] - '0');
    }
    return value;
}

static void take_field(struct stream *stream, const nghttp2_nv *field) {
    if (is(field->name, field->namelen, ":status", 7)) {
        stream->http_status = number(field->value, field->valuelen);
    } else if (is(field->name, field->namelen, "grpc-status", 11)) {
        stream->grpc_status = number(field->value, field->valuelen);
    } else if (is(field->name, field->namelen, "grpc-message", 12)) {
        snprintf(stream->text, sizeof stream->text, "%.*s", (int)field->valuelen, (const char *)field->value);
    }
}

// Blocks of streams that are over (`stream` is null) are read, too: they may change the compression table.
void load_answer_block(struct connection *connection, struct stream *stream, const uint8_t *bytes, size_t count) {
    for (;;) {
        nghttp2_nv field;
        int flags = 0;
        ssize_t taken = nghttp2_hd_inflate_hd2(connection->inflater, &field, &flags, bytes, count, 1);
        if (taken < 0) return load_fail(connection->run, "an answer's fields cannot be read");
        bytes += taken;
        count -= (size_t)taken;
        if (flags & NGHTTP2_HD_INFLATE_EMIT && stream != NULL) take_field(stream, &field);
        if (flags & NGHTTP2_HD_INFLATE_FINAL) break;
        if (!(flags & NGHTTP2_HD_INFLATE_EMIT) && count == 0) break;
    }
    nghttp2_hd_inflate_end_headers(connection->inflater);
}

static void end_message(struct run *run, struct stream *stream) {
    const struct load_settings *settings = run->settings;
    stream->prefix_count = 0;
    if (settings->check == NULL) return;
    if (!settings->check(settings->context, stream->message.base, stream->message.count)) stream->is_wrong = true;
    stream->message.count = 0;
}

// gRPC's framing: a byte that says whether the message is compressed, its length, the message.
void load_answer_data(struct run *run, struct stream *stream, const uint8_t *bytes, size_t count) {
    const struct load_settings *settings = run->settings;
    while (count > 0) {
        if (stream->prefix_count < sizeof stream->prefix) {
            stream->prefix[stream->prefix_count++] = *bytes++;
            count -= 1;
            if (stream->prefix_count < sizeof stream->prefix) continue;
            const uint8_t *prefix = stream->prefix;
            stream->message_left =
                (uint32_t)prefix[1] << 24 | (uint32_t)prefix[2] << 16 | (uint32_t)prefix[3] << 8 | prefix[4];
            if (prefix[0] != 0) stream->is_wrong = true;
            if (settings->message_tag == 0) stream->messages += 1;
            if (stream->message_left == 0) end_message(run, stream);
            // Marks that the first byte is still to come.
            stream->prefix[0] = 1;
            continue;
        }
        if (stream->prefix[0] == 1) {
            stream->prefix[0] = 0;
            if (settings->message_tag != 0 && *bytes == settings->message_tag) stream->messages += 1;
        }
        size_t taken = count < stream->message_left ? count : stream->message_left;
        if (settings->check != NULL && !load_append(&stream->message, bytes, taken)) load_fail(run, "no memory");
        bytes += taken;
        count -= taken;
        stream->message_left -= (uint32_t)taken;
        if (stream->message_left == 0) end_message(run, stream);
    }
}

// Whether an answer is right; otherwise `text` says what is wrong.
static bool is_right(const struct run *run, const struct stream *stream, const char *failure, char *text,
                     size_t text_size) {
    uint32_t wanted = run->settings->messages;
    if (failure != NULL) {
        snprintf(text, text_size, "%s", failure);
    } else if (stream->http_status != 200) {
        snprintf(text, text_size, "HTTP status %d instead of a gRPC response", stream->http_status);
    } else if (stream->grpc_status != 0) {
        snprintf(text, text_size, "grpc-status %d: %s", stream->grpc_status, stream->text);
    } else if (stream->messages != wanted) {
        snprintf(text, text_size, "%u messages instead of %u", stream->messages, wanted);
    } else if (stream->is_wrong || stream->prefix_count != 0) {
        snprintf(text, text_size, "the content of an answer is wrong");
    } else {
        return true;
    }
    return false;
}

static void keep_latency(struct load_result *result, uint64_t nanoseconds) {
    if (result->count == result->latencies_capacity) {
        size_t capacity = result->latencies_capacity == 0 ? 1 << 16 : result->latencies_capacity * 2;
        uint32_t *larger = realloc(result->latencies, capacity * sizeof *larger);
        if (larger == NULL) abort();
        result->latencies = larger;
        result->latencies_capacity = capacity;
    }
    uint64_t microseconds = nanoseconds / 1000;
    result->latencies[result->count++] = microseconds > UINT32_MAX ? UINT32_MAX : (uint32_t)microseconds;
}

// Counts the answer, and sends the next request in its place.
void load_answer_end(struct connection *connection, struct stream *stream, uint64_t now, const char *failure) {
    struct run *run = connection->run;
    struct load_result *result = run->result;
    char text[256];
    bool is_good = is_right(run, stream, failure, text, sizeof text);
    run->open -= 1;
    run->answered_at = now;
    result->all += 1;
    stream->message.count = 0;
    if (!is_good && result->error == NULL) result->error = strdup(text);
    if (now >= run->count_from && now <= run->deadline) {
        if (is_good) {
            keep_latency(result, now - stream->sent_at);
        } else {
            result->errors += 1;
            // A server that rejects everything would be called as fast as it can reject.
            if (result->errors > 1000 + result->count) load_fail(run, "Most requests fail: %s", text);
        }
    }
    load_request_next(connection, stream, now);
}
