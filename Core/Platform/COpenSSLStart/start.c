#include "copensslstart.h"

#include <openssl/crypto.h>

// A program may end while its threads use OpenSSL: at an exit, the end of `main`, or a signal. OpenSSL's own handler for
// the end frees locks and tables that these threads use then, and the program crashes. The system frees everything anyway,
// so the handler is never installed. OpenSSL decides that at its first initialisation, which may be that of libcurl, of
// another library, or of any call of ours: this runs before `main`.
__attribute__((constructor)) static void start(void) { OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL); }
