#ifndef HEARTH_CZLIB_SHIM_H
#define HEARTH_CZLIB_SHIM_H

#include <zlib.h>

// inflateInit2 and deflateInit2 are macros. 16 added to the window bits means the gzip wrapper.

static inline int gzip_inflate_start(z_stream *stream) { return inflateInit2(stream, 15 + 16); }

static inline int gzip_deflate_start(z_stream *stream, int level) {
    return deflateInit2(stream, level, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
}

// Below zero means no wrapper at all: what permessage-deflate carries. 8 bits aren't possible then.

static inline int raw_inflate_start(z_stream *stream, int window_bits) { return inflateInit2(stream, -window_bits); }

static inline int raw_deflate_start(z_stream *stream, int level, int window_bits) {
    return deflateInit2(stream, level, Z_DEFLATED, -window_bits, 8, Z_DEFAULT_STRATEGY);
}

#endif
