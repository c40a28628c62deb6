import HearthConcurrency
import HearthDocuments
import HearthHost
import HearthModel
import HearthTestSupport
import Synchronization
import Testing

@testable import HearthTriggers

struct DatabaseOpenerTests {
    private final class Owner: DatabaseOpenerOwner {
        let gone = Mutex<[DatabaseName]>([])
        func wantsOpen(_ item: DatabaseOpener.Item) -> Bool { true }
        func isGone(_ name: DatabaseName) { gone.withLock { $0.append(name) } }
    }

    /// Namespaces, some of which can't be opened.
    private final class Disk: Sendable {
        struct State {
            var tried: [String] = []
            var broken: Set<String> = []
            var isListed = true
        }

        let state = Mutex(State())
        let gate = Mutex<Latch?>(nil)

        var tried: [String] { state.withLock { $0.tried } }

        func directory(_ names: [String]) -> TriggerDirectory {
            TriggerDirectory(
                names: { [self] () throws(Status) in
                    if !state.withLock({ $0.isListed }) { throw .unavailable("The disk is away.") }
                    return []
                }, exists: { _ throws(Status) in false },
                open: { _, completion in completion(.failure(.unavailable("not asked for"))) },
                namespaces: { () throws(Status) in names },
                openNamespace: { [self] name throws(Status) in
                    let isBroken = state.withLock { state in
                        state.tried.append(name)
                        return state.broken.contains(name)
                    }
                    gate.withLock { $0 }?.wait()
                    if isBroken { throw .unavailable("The file is damaged.") }
                })
        }
    }

    private let clock = StoppedClock()
    private let owner = Owner()
    private let disk = Disk()
    private let lines = SharedValue(Mutex<[String]>([]))
    private let opener: DatabaseOpener

    init() {
        let lines = lines
        opener = DatabaseOpener(
            log: Log(write: { bytes in lines.value.withLock { $0.append(String(decoding: bytes, as: UTF8.self)) } }),
            clock: clock)
        opener.attach(owner)
    }

    private func count(_ string: String) -> Int { lines.value.withLock { $0.count { $0.contains(string) } } }

    /// Runs what waits on the opener's thread to its end.
    private func settle() async {
        let mark = "mark\(disk.tried.count)"
        opener.open(.namespace(mark))
        #expect(await eventually { disk.tried.contains(mark) })
    }

    @Test func whatCannotBeOpenedIsTriedAgainAfterPausesThatDoubleAndLoggedOnce() async {
        disk.state.withLock { $0.broken = ["b"] }
        opener.start(disk.directory(["a", "b", "c"]), opensAll: true)
        opener.waitUntilOpened()
        // One that fails holds up no other.
        #expect(disk.tried == ["a", "b", "c"])
        for _ in 0..<1000 {
            clock.advance(seconds: 1)
            opener.poll()
            await settle()
            // Nor do those who want it make it more often.
            opener.open(.namespace("b"))
        }
        let count = disk.tried.count { $0 == "b" }
        #expect(count > 8 && count < 14, "\(count)")
        #expect(self.count("can't be opened") == 1)
        disk.state.withLock { $0.broken = [] }
        clock.advance(seconds: 300)
        opener.poll()
        #expect(await eventually { self.count("can be opened again") == 1 })
        opener.stop()
    }

    @Test func aListThatCannotBeReadIsReadAgain() async {
        disk.state.withLock { $0.isListed = false }
        opener.start(disk.directory(["a"]), opensAll: true)
        opener.waitUntilOpened()
        #expect(disk.tried == [])
        disk.state.withLock { $0.isListed = true }
        clock.advance(seconds: 1)
        opener.poll()
        #expect(await eventually { disk.tried == ["a"] })
        opener.stop()
    }

    /// A stop waits for the one that is being opened, and not for those behind it.
    @Test func aStopOpensNothingThatWaits() async {
        let gate = Latch()
        disk.gate.withLock { $0 = gate }
        opener.start(disk.directory((0..<100).map { "d\($0)" }), opensAll: true)
        #expect(await eventually { disk.tried == ["d0"] })
        opener.open(.namespace("asked"))
        opener.drain()
        // Something that was answered is to be stored.
        opener.open(.namespace("needed"))
        gate.open()
        #expect(await eventually { disk.tried == ["d0", "needed"] })
        opener.stop()
        opener.open(.namespace("late"))
        #expect(disk.tried == ["d0", "needed"])
    }

    @Test func aDatabaseThatIsGoneIsNotMadeAnew() async {
        let name = DatabaseName(project: "p")
        opener.start(disk.directory([]), opensAll: false)
        opener.open(.database(name))
        #expect(await eventually { owner.gone.withLock { $0 } == [name] })
        #expect(count("can't be opened") == 0)
        opener.stop()
    }
}
