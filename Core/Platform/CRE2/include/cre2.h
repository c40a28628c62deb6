#ifndef HEARTH_CRE2_H
#define HEARTH_CRE2_H

#include <stdbool.h>
#include <stddef.h>

/* RE2 for C: Security Rules are written for its syntax, and its matching takes time linear in the text. */

#ifdef __cplusplus
extern "C" {
#endif

typedef struct hearth_re2 hearth_re2;

/* A compiled pattern, or NULL when RE2 refuses the text or it takes more than `memory` bytes. */
hearth_re2 *hearth_re2_new(const char *pattern, size_t size, size_t memory);
void hearth_re2_free(hearth_re2 *expression);

/* Capturing groups, without the whole match. */
int hearth_re2_groups(const hearth_re2 *expression);

/* Whether the whole text matches. */
bool hearth_re2_matches(const hearth_re2 *expression, const char *text, size_t size);

/* Finds the first match that begins at `start` or later. `spans` gets the begin and the end of the match and of `groups`
   groups; a group that took no part has -1. */
bool hearth_re2_find(
    const hearth_re2 *expression, const char *text, size_t size, size_t start, ptrdiff_t *spans, int groups);

#ifdef __cplusplus
}
#endif

#endif
