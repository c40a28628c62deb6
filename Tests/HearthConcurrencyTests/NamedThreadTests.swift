import Glibc
import HearthConcurrency
import Synchronization
import Testing

@Suite struct NamedThreadTests {
    /// The nice value of the calling thread.
    private static func niceValue() -> Int32 { getpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0) }

    @Test func onlyTheThreadThatGivesWayHasALowerPriority() throws {
        let before = Self.niceValue()
        let seen = Mutex<Int32?>(nil)
        let thread = try #require(
            NamedThread.start("gives-way") {
                NamedThread.giveWay()
                seen.withLock { $0 = Self.niceValue() }
            })
        thread.join()
        #expect(seen.withLock { $0 } == max(18, before))
        #expect(Self.niceValue() == before)
    }
}
