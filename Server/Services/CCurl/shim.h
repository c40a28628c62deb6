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

#endif
