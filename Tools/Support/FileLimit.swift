import Glibc

/// The number of open files, including sockets, that a process may have.
package enum FileLimit {
    /// Raises the limit of this process, and of the processes that it starts, to the system's maximum.
    ///
    /// Shells set 1,024, for programs that use select(); a server with that limit would reject its 1,000th client.
    /// - Returns: the limit.
    @discardableResult
    package static func raise() -> Int {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
        if limit.rlim_cur < limit.rlim_max {
            var raised = limit
            raised.rlim_cur = limit.rlim_max
            if setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &raised) == 0 { limit = raised }
        }
        return Int(clamping: limit.rlim_cur)
    }
}
