#ifndef HEARTH_COPENSSL_SHIM_H
#define HEARTH_COPENSSL_SHIM_H

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

// Macros with arguments aren't imported into Swift: each gets a function.

static inline int tls_set_minimum_version_1_2(SSL_CTX *context) {
    return (int)SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
}

static inline void tls_set_modes(SSL_CTX *context) {
    // RELEASE_BUFFERS gives the 2 x 16 KiB record buffers of an idle connection back.
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
}

static inline void tls_set_server_options(SSL_CTX *context) {
    // No renegotiation and no compression: both have been used against servers. A peer that closes without
    // close_notify is an ordinary end for us: HTTP marks the end of every message itself.
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE |
                                     SSL_OP_IGNORE_UNEXPECTED_EOF);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}

static inline long tls_set_server_name(SSL *session, const char *name) {
    return SSL_set_tlsext_host_name(session, name);
}

static inline int tls_has_buffered_input(SSL *session) { return SSL_pending(session) > 0; }

#endif
