import HearthNetwork

/// The results of one connection of a run.
struct LoadCount {
    let run: LoadRun
    private(set) var result = LoadResult()

    init(_ run: LoadRun) { self.run = run }

    /// Records the response to a request and its send time.
    /// - Parameter failure: the error of the response.
    mutating func answered(_ failure: String?, sentAt: UInt64) {
        let now = EventLoop.monotonicNanoseconds()
        guard now >= run.countFrom, now <= run.deadline else { return }
        guard let failure else {
            result.count += 1
            result.latenciesMicroseconds.append(UInt32(clamping: (now - sentAt) / 1000))
            return
        }
        result.errors += 1
        result.firstError = result.firstError ?? failure
        // A server that rejects everything would be called as fast as it can reject.
        if result.errors > 1000 + result.count { run.fail("Most requests fail: \(failure)") }
    }
}
