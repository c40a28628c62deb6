#ifndef HEARTH_CLINUX_SHIM_H
#define HEARTH_CLINUX_SHIM_H

// What the Glibc module leaves out: epoll, eventfd, accept4; and the parts of them that are macros, packed
// structures or unions, which Swift imports badly or not at all.

#include <fcntl.h>
#include <malloc.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#ifdef __GLIBC__
#include <execinfo.h>
#endif

// The size of an allocated block, at least what was asked for.
static inline size_t linux_malloc_size(void *block) { return malloc_usable_size(block); }

// The return addresses of the calling thread's stack, and a line for each, in one block that the caller frees.
static inline int linux_backtrace(void **addresses, int count_max) {
#ifdef __GLIBC__
    return backtrace(addresses, count_max);
#else
    (void)addresses;
    (void)count_max;
    return 0;
#endif
}

static inline char **linux_backtrace_lines(void *const *addresses, int count) {
#ifdef __GLIBC__
    return backtrace_symbols(addresses, count);
#else
    (void)addresses;
    (void)count;
    return 0;
#endif
}

static inline void linux_malloc_trim(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

// Without settings, a large block that is freed raises the size from which blocks get pages of their own, up to 32 MB:
// from then on, blocks of some megabytes share heaps with small ones, and stay with the process when they are free.
static inline void linux_malloc_own_pages(int from_bytes, int kept_bytes) {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, from_bytes);
    mallopt(M_TRIM_THRESHOLD, kept_bytes);
#else
    (void)from_bytes;
    (void)kept_bytes;
#endif
}

static inline int linux_accept(int listener, struct sockaddr *address, socklen_t *length) {
    // accept4 hides behind _GNU_SOURCE; the system call doesn't.
    return (int)syscall(SYS_accept4, listener, address, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
}

static inline int linux_epoll_new(void) { return epoll_create1(EPOLL_CLOEXEC); }

static inline int linux_epoll_change(int epoll, int operation, int descriptor, uint32_t events, void *context) {
    struct epoll_event event;
    event.events = events;
    event.data.ptr = context;
    return epoll_ctl(epoll, operation, descriptor, &event);
}

static inline void *linux_epoll_context(const struct epoll_event *event) { return event->data.ptr; }
static inline uint32_t linux_epoll_events(const struct epoll_event *event) { return event->events; }

static inline int linux_eventfd_new(void) { return eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC); }
static inline int linux_eventfd_signal(int descriptor) { return eventfd_write(descriptor, 1); }

static inline uint64_t linux_monotonic_nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

// Gives the calling thread a low weight, and slices of 10 ms: since Linux 6.12 a thread that wakes and has shorter ones
// (3 ms) interrupts it; earlier kernels ignore the length. With the weight alone, what wakes waits for the end of a slice.
static inline int linux_give_way(int nice) {
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice_value;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attributes = {.size = 48, .flags = 0x08 /* SCHED_FLAG_KEEP_POLICY */, .nice_value = nice, .runtime = 10000000};
    return (int)syscall(SYS_sched_setattr, 0, &attributes, 0);
}

// Gives two folders or files each other's names, at one moment.
static inline int linux_exchange(const char *first, const char *second) {
    return (int)syscall(SYS_renameat2, AT_FDCWD, first, AT_FDCWD, second, 2 /* RENAME_EXCHANGE */);
}

// What `top -H` and debuggers show; at most 15 characters.
static inline void linux_set_thread_name(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

static const uint32_t linux_epoll_in = EPOLLIN;
static const uint32_t linux_epoll_out = EPOLLOUT;
static const uint32_t linux_epoll_rdhup = EPOLLRDHUP;
static const uint32_t linux_epoll_hup = EPOLLHUP;
static const uint32_t linux_epoll_err = EPOLLERR;
static const uint32_t linux_epoll_et = EPOLLET;

#endif
