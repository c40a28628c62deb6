import Glibc
import HearthHost
import HearthModel
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthRealtimeServer

@Suite struct RulesStoreTests {
    private final class Lines: Sendable {
        let all = Mutex<[String]>([])
        var log: Log {
            Log(now: { Timestamp(microseconds: 0) }) { [self] line in
                all.withLock { $0.append(String(decoding: line, as: UTF8.self)) }
            }
        }
    }

    /// The server is at fault, not the client, which need not know the path.
    @Test func aDamagedFileIsLoggedOnceAndFailsWithoutItsPath() throws {
        let folder = TemporaryFolder()
        let lines = Lines()
        let store = RealtimeRulesStore(folder: folder.path, log: lines.log)
        try store.save(Array("{}".utf8), base: "-", "shop")
        #expect(try store.load("shop") == .init(base: "-", string: Array("{}".utf8)))
        folder.write("shop.rules", "{broken")
        let failure = Status(.internal, "The stored rules of shop can't be read.")
        for _ in 0..<3 { #expect(throws: failure) { try store.load("shop") } }
        #expect(lines.all.withLock { $0.count } == 1)
        #expect(lines.all.withLock { $0[0].contains("\(folder.path)/shop.rules contains no rules.") })
        try store.save(Array("{}".utf8), base: "-", "shop")
        #expect(try store.load("shop") != nil)
        unlink(folder.path + "/shop.rules")
        mkdir(folder.path + "/shop.rules", 0o700)
        #expect(throws: failure) { try store.load("shop") }
        #expect(lines.all.withLock { $0.count } == 2)
        rmdir(folder.path + "/shop.rules")
    }
}
