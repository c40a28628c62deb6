#ifndef HEARTH_CNETLINK_SHIM_H
#define HEARTH_CNETLINK_SHIM_H

// What the Glibc module leaves out: the kernel's news about addresses and routes, and two small settings.

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

// A socket that becomes readable when an address or a route changes; -1 with errno when there can be none.
static inline int netlink_open_route_changes(void) {
    int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (descriptor < 0) return -1;
    struct sockaddr_nl address;
    memset(&address, 0, sizeof address);
    address.nl_family = AF_NETLINK;
    address.nl_groups = RTMGRP_IPV4_IFADDR | RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_IFADDR | RTMGRP_IPV6_ROUTE;
    if (bind(descriptor, (struct sockaddr *)&address, sizeof address) < 0) {
        close(descriptor);
        return -1;
    }
    return descriptor;
}

// What `top -H` and debuggers show; at most 15 characters.
static inline void thread_set_name(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

// Data that nobody acknowledges for so long ends a connection: what TCP keep-alive alone can't do while data waits.
static inline int socket_set_user_timeout(int descriptor, unsigned milliseconds) {
    return setsockopt(descriptor, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);
}

#endif
