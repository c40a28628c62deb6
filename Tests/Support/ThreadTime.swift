import Glibc

/// The CPU time that the calling thread has used, in seconds. Tests of cost compare it: a busy machine makes them
/// wait, but not work.
package func threadSeconds() -> Double {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// The CPU time of a body that doesn't leave its thread.
package func threadSeconds(of body: () throws -> Void) rethrows -> Double {
    let start = threadSeconds()
    try body()
    return threadSeconds() - start
}
