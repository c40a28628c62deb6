#include "cre2.h"

#include <re2/re2.h>

#include <exception>
#include <vector>

// No exception may leave these functions: Swift can't catch one.

struct hearth_re2 {
    re2::RE2 expression;

    hearth_re2(const re2::StringPiece &pattern, const re2::RE2::Options &options) : expression(pattern, options) {}
};

extern "C" hearth_re2 *hearth_re2_new(const char *pattern, size_t size, size_t memory) {
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(static_cast<int64_t>(memory));
    try {
        auto *compiled = new hearth_re2(re2::StringPiece(pattern, size), options);
        if (compiled->expression.ok()) return compiled;
        delete compiled;
    } catch (const std::exception &) {
    }
    return nullptr;
}

extern "C" void hearth_re2_free(hearth_re2 *expression) { delete expression; }

extern "C" int hearth_re2_groups(const hearth_re2 *expression) {
    return expression->expression.NumberOfCapturingGroups();
}

extern "C" bool hearth_re2_matches(const hearth_re2 *expression, const char *text, size_t size) {
    try {
        re2::StringPiece piece(text, size);
        return expression->expression.Match(piece, 0, size, re2::RE2::ANCHOR_BOTH, nullptr, 0);
    } catch (const std::exception &) {
        return false;
    }
}

extern "C" bool hearth_re2_find(
    const hearth_re2 *expression, const char *text, size_t size, size_t start, ptrdiff_t *spans, int groups) {
    try {
        re2::StringPiece piece(text, size);
        std::vector<re2::StringPiece> found(static_cast<size_t>(groups) + 1);
        if (!expression->expression.Match(piece, start, size, re2::RE2::UNANCHORED, found.data(), groups + 1)) {
            return false;
        }
        for (int index = 0; index <= groups; index++) {
            const re2::StringPiece &group = found[static_cast<size_t>(index)];
            bool took_part = group.data() != nullptr;
            ptrdiff_t begin = took_part ? group.data() - text : -1;
            spans[2 * index] = begin;
            spans[2 * index + 1] = took_part ? begin + static_cast<ptrdiff_t>(group.size()) : -1;
        }
        return true;
    } catch (const std::exception &) {
        return false;
    }
}
