import Glibc

/// How many files, sockets among them, a process may have open.
package enum FileLimit {
    /// Lets this process, and those that it starts from now on, have as many as the system allows them.
    ///
    /// Shells give 1,024, for the sake of programs that use select(); a server with that bound refuses its 1,000th client.
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
