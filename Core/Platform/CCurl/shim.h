#ifndef HEARTH_CCURL_SHIM_H
#define HEARTH_CCURL_SHIM_H

#include <curl/curl.h>

// Variadic functions aren't imported into Swift: each use gets a function of its own.

static inline void curl_set_address(CURL *handle, const char *address) {
    curl_easy_setopt(handle, CURLOPT_URL, address);
}

// Only what a key server needs: HTTP, some redirects, and an end to waiting.
static inline void curl_set_bounds(CURL *handle, long milliseconds) {
    curl_easy_setopt(handle, CURLOPT_PROTOCOLS_STR, "http,https");
    curl_easy_setopt(handle, CURLOPT_REDIR_PROTOCOLS_STR, "https");
    curl_easy_setopt(handle, CURLOPT_FOLLOWLOCATION, 1L);
    curl_easy_setopt(handle, CURLOPT_MAXREDIRS, 3L);
    curl_easy_setopt(handle, CURLOPT_TIMEOUT_MS, milliseconds);
    curl_easy_setopt(handle, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(handle, CURLOPT_FAILONERROR, 1L);
    curl_easy_setopt(handle, CURLOPT_USERAGENT, "hearth");
}

static inline void curl_set_sink(CURL *handle, size_t (*take)(char *, size_t, size_t, void *), void *context) {
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, take);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, context);
}

// The client's transport. Options and infos are named by their type, which the variadic functions leave unchecked.

static inline CURLcode curl_set_long(CURL *handle, CURLoption option, long value) {
    return curl_easy_setopt(handle, option, value);
}

// For options whose value is a string (copied by libcurl), a list, a buffer, a share or a callback's context.
static inline CURLcode curl_set_string(CURL *handle, CURLoption option, const char *value) {
    return curl_easy_setopt(handle, option, value);
}
static inline CURLcode curl_set_pointer(CURL *handle, CURLoption option, void *value) {
    return curl_easy_setopt(handle, option, value);
}

// A body that stays with the caller.
static inline CURLcode curl_set_body(CURL *handle, const void *bytes, curl_off_t count) {
    CURLcode code = curl_easy_setopt(handle, CURLOPT_POSTFIELDSIZE_LARGE, count);
    return code == CURLE_OK ? curl_easy_setopt(handle, CURLOPT_POSTFIELDS, bytes) : code;
}

typedef size_t (*curl_bytes_callback)(char *, size_t, size_t, void *);

static inline void curl_set_callbacks(
    CURL *handle, curl_bytes_callback header, curl_bytes_callback write, curl_bytes_callback read,
    curl_seek_callback seek, curl_prereq_callback prerequest, void *context) {
    curl_easy_setopt(handle, CURLOPT_HEADERFUNCTION, header);
    curl_easy_setopt(handle, CURLOPT_HEADERDATA, context);
    curl_easy_setopt(handle, CURLOPT_WRITEFUNCTION, write);
    curl_easy_setopt(handle, CURLOPT_WRITEDATA, context);
    curl_easy_setopt(handle, CURLOPT_READFUNCTION, read);
    curl_easy_setopt(handle, CURLOPT_READDATA, context);
    curl_easy_setopt(handle, CURLOPT_SEEKFUNCTION, seek);
    curl_easy_setopt(handle, CURLOPT_SEEKDATA, context);
    curl_easy_setopt(handle, CURLOPT_PREREQFUNCTION, prerequest);
    curl_easy_setopt(handle, CURLOPT_PREREQDATA, context);
}

static inline void curl_set_socket_callbacks(
    CURL *handle, curl_opensocket_callback open, void *open_context, curl_closesocket_callback close,
    void *close_context, curl_sockopt_callback options) {
    curl_easy_setopt(handle, CURLOPT_OPENSOCKETFUNCTION, open);
    curl_easy_setopt(handle, CURLOPT_OPENSOCKETDATA, open_context);
    curl_easy_setopt(handle, CURLOPT_CLOSESOCKETFUNCTION, close);
    curl_easy_setopt(handle, CURLOPT_CLOSESOCKETDATA, close_context);
    curl_easy_setopt(handle, CURLOPT_SOCKOPTFUNCTION, options);
}

static inline void curl_set_debug(CURL *handle, curl_debug_callback take, void *context) {
    curl_easy_setopt(handle, CURLOPT_DEBUGFUNCTION, take);
    curl_easy_setopt(handle, CURLOPT_DEBUGDATA, context);
    curl_easy_setopt(handle, CURLOPT_VERBOSE, 1L);
}

static inline CURLcode curl_get_long(CURL *handle, CURLINFO info, long *value) {
    return curl_easy_getinfo(handle, info, value);
}
static inline CURLcode curl_get_socket(CURL *handle, curl_socket_t *value) {
    return curl_easy_getinfo(handle, CURLINFO_ACTIVESOCKET, value);
}

static inline CURLMcode curl_multi_set_long(CURLM *multi, CURLMoption option, long value) {
    return curl_multi_setopt(multi, option, value);
}

// The result lies in a union.
static inline CURLcode curl_message_result(const CURLMsg *message) { return message->data.result; }

// A pool of connections apart from the multi handle's own. One thread uses it, so it needs no locks.
static inline CURLSH *curl_pool_new(void) {
    CURLSH *share = curl_share_init();
    if (share && curl_share_setopt(share, CURLSHOPT_SHARE, CURL_LOCK_DATA_CONNECT) != CURLSHE_OK) {
        curl_share_cleanup(share);
        return NULL;
    }
    return share;
}

#endif
