#ifndef HEARTH_COPENSSL_SHIM_H
#define HEARTH_COPENSSL_SHIM_H

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <string.h>

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

// A client refuses renegotiation, too: HTTP/2 forbids it (RFC 9113, 9.2.1).
static inline void tls_set_client_options(SSL_CTX *context) {
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}

static inline int tls_error_is_of_tls(unsigned long code) { return ERR_GET_LIB(code) == ERR_LIB_SSL; }

static inline int tls_error_reason(unsigned long code) { return ERR_GET_REASON(code); }

static inline long tls_set_server_name(SSL *session, const char *name) {
    return SSL_set_tlsext_host_name(session, name);
}

// 1 and the seconds until the context's certificate expires; 0 when it has no certificate with a readable time.
static inline int tls_certificate_seconds_left(SSL_CTX *context, long *seconds_left) {
    X509 *certificate = SSL_CTX_get0_certificate(context);
    int days = 0, seconds = 0;
    if (!certificate || ASN1_TIME_diff(&days, &seconds, NULL, X509_get0_notAfter(certificate)) != 1) return 0;
    *seconds_left = days * 86400L + seconds;
    return 1;
}

static inline int tls_has_buffered_input(SSL *session) { return SSL_pending(session) > 0; }

// A part of a header, or a header and none or some of what follows it.
static inline int tls_holds_partial_record(SSL *session) {
    return SSL_has_pending(session) || strcmp(SSL_rstate_string(session), "RB") == 0;
}

// Keys of JSON Web Keys (RFC 7518): built from their numbers, because OpenSSL reads no JSON.

static inline EVP_PKEY *key_from_parameters(const char *type, OSSL_PARAM_BLD *build) {
    EVP_PKEY *key = NULL;
    OSSL_PARAM *parameters = OSSL_PARAM_BLD_to_param(build);
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    if (parameters && context && EVP_PKEY_fromdata_init(context) == 1) {
        if (EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters) != 1) key = NULL;
    }
    EVP_PKEY_CTX_free(context);
    OSSL_PARAM_free(parameters);
    return key;
}

static inline EVP_PKEY *key_rsa(const unsigned char *n, int n_count, const unsigned char *e, int e_count) {
    EVP_PKEY *key = NULL;
    BIGNUM *modulus = BN_bin2bn(n, n_count, NULL);
    BIGNUM *exponent = BN_bin2bn(e, e_count, NULL);
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    if (modulus && exponent && build && OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_N, modulus) &&
        OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_RSA_E, exponent)) {
        key = key_from_parameters("RSA", build);
    }
    OSSL_PARAM_BLD_free(build);
    BN_free(modulus);
    BN_free(exponent);
    return key;
}

// The point is 04, x and y.
static inline EVP_PKEY *key_p256(const unsigned char *point, size_t count) {
    EVP_PKEY *key = NULL;
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    if (build && OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) &&
        OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point, count)) {
        key = key_from_parameters("EC", build);
    }
    OSSL_PARAM_BLD_free(build);
    return key;
}

static inline EVP_PKEY *key_public_from_pem(const void *text, int count) {
    BIO *memory = BIO_new_mem_buf(text, count);
    EVP_PKEY *key = PEM_read_bio_PUBKEY(memory, NULL, NULL, NULL);
    BIO_free(memory);
    if (key) return key;
    memory = BIO_new_mem_buf(text, count);
    X509 *certificate = PEM_read_bio_X509(memory, NULL, NULL, NULL);
    BIO_free(memory);
    if (certificate) {
        key = X509_get_pubkey(certificate);
        X509_free(certificate);
    }
    ERR_clear_error();
    return key;
}

static inline EVP_PKEY *key_private_from_pem(const void *text, int count) {
    BIO *memory = BIO_new_mem_buf(text, count);
    EVP_PKEY *key = PEM_read_bio_PrivateKey(memory, NULL, NULL, NULL);
    BIO_free(memory);
    ERR_clear_error();
    return key;
}

// A signature of RFC 7518 is r and s, 32 bytes each; OpenSSL's is DER. Returns its size, 0 on failure.
static inline int key_der_signature(const unsigned char *raw, unsigned char *der, int room) {
    int size = 0;
    ECDSA_SIG *signature = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(raw, 32, NULL), *s = BN_bin2bn(raw + 32, 32, NULL);
    if (signature && r && s && ECDSA_SIG_set0(signature, r, s) == 1) {
        size = i2d_ECDSA_SIG(signature, NULL);
        if (size > 0 && size <= room) size = i2d_ECDSA_SIG(signature, &der);
        else size = 0;
    } else {
        BN_free(r);
        BN_free(s);
    }
    ECDSA_SIG_free(signature);
    return size;
}

static inline int key_raw_signature(const unsigned char *der, long count, unsigned char *raw) {
    ECDSA_SIG *signature = d2i_ECDSA_SIG(NULL, &der, count);
    if (!signature) return 0;
    int isDone = BN_bn2binpad(ECDSA_SIG_get0_r(signature), raw, 32) == 32 &&
                 BN_bn2binpad(ECDSA_SIG_get0_s(signature), raw + 32, 32) == 32;
    ECDSA_SIG_free(signature);
    return isDone;
}

static inline int key_verify_sha256(EVP_PKEY *key, const unsigned char *signature, size_t signature_count,
                                    const unsigned char *text, size_t count) {
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    int isValid = context && EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
                  EVP_DigestVerify(context, signature, signature_count, text, count) == 1;
    EVP_MD_CTX_free(context);
    ERR_clear_error();
    return isValid;
}

// Returns the size, 0 on failure.
static inline size_t key_sign_sha256(EVP_PKEY *key, const unsigned char *text, size_t count, unsigned char *signature,
                                     size_t room) {
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    size_t size = room;
    int isDone = context && EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key) == 1 &&
                 EVP_DigestSign(context, signature, &size, text, count) == 1;
    EVP_MD_CTX_free(context);
    ERR_clear_error();
    return isDone ? size : 0;
}

static inline int key_is_rsa(EVP_PKEY *key) { return EVP_PKEY_get_base_id(key) == EVP_PKEY_RSA; }

static inline int key_is_p256(EVP_PKEY *key) {
    char group[32];
    size_t size = 0;
    return EVP_PKEY_get_base_id(key) == EVP_PKEY_EC && EVP_PKEY_get_group_name(key, group, sizeof group, &size) == 1 &&
           strcmp(group, "prime256v1") == 0;
}

static inline int key_bits(EVP_PKEY *key) { return EVP_PKEY_get_bits(key); }

#endif
