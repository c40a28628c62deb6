#ifndef HEARTH_CCRASH_H
#define HEARTH_CCRASH_H

#include <stdint.h>
#include <sys/types.h>

// What a thread does, as the last lines of the log tell it when a signal ends the process. Written by its thread alone, without
// a lock: a torn value does no harm.
enum hearth_work { HEARTH_WORK_NONE, HEARTH_WORK_READ, HEARTH_WORK_SEND, HEARTH_WORK_JOB, HEARTH_WORK_TIMER };
enum { HEARTH_ACTIVITY_REQUEST_MAX = 160 };
typedef struct hearth_activity {
    pid_t thread;
    uint32_t work;
    // Of the connection that is read or sent to.
    int32_t descriptor;
    // The last request that began, not terminated, and its connection until that is closed; -1 when it is not known.
    int32_t request_descriptor;
    uint32_t request_length;
    uint8_t request[HEARTH_ACTIVITY_REQUEST_MAX];
} hearth_activity;

// The activity of the calling thread; NULL when there are too many threads or no memory.
hearth_activity *hearth_activity_new(void);
void hearth_activity_free(hearth_activity *activity);

// When a signal of the processor or abort() ends the process, lines on the standard error say which, where, and what the threads
// with an activity were doing; then the signal ends the process as it would have. Replaces the handlers of Swift's runtime, which keep
// the process for seconds; those of sanitizers stay.
// as_json: each line is a JSON object.
void hearth_crash_report(int as_json);

#endif
