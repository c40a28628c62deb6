import Foundation
import FoundationNetworking
import HearthFirestore
import HearthTestSupport
import Synchronization
import Testing

/// Writes whose answers are lost are applied once, and their callers receive the outcome of that application.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct LostAnswerTests {
    enum Ending: CaseIterable { case connection, server, device }

    /// The field `n` of `c/d` at the server, read without the proxy.
    private func stored(_ backend: Backend) async throws -> Int? {
        var request = URLRequest(
            url: backend.url("/v1/projects/\(Backend.project)/databases/(default)/documents/c/d"))
        request.setValue("Bearer owner", forHTTPHeaderField: "Authorization")
        let (data, _) = try await URLSession.shared.data(for: request)
        let document = try JSONSerialization.jsonObject(with: data) as? [String: Any]
        let fields = document?["fields"] as? [String: [String: String]]
        return fields?["n"]?["integerValue"].flatMap { Int($0) }
    }

    /// Waits until the server has applied the given number of increments.
    private func awaitMade(_ count: Int, _ backend: Backend) async throws {
        try await Waiting.until("\(count) increments are applied") { try await stored(backend) == count }
    }

    @Test(arguments: [false, true], Ending.allCases) func aWriteIsAppliedOnce(isPersistent: Bool, ending: Ending)
        async throws
    {
        if ending == .device, !isPersistent { return }
        let backend = try Backend()
        let device = try Device(backend, isPersistent: isPersistent)
        try await device.db.document("c/d").setData(["n": 0])
        for round in 1...3 {
            backend.network.loseAnswers()
            let answers = Recorder<String>()
            for number in 0..<3 {
                device.db.document("c/d").updateData(["n": FieldValue.increment(Int64(1))]) {
                    answers.append("\(number) \(($0 as NSError?)?.code ?? 0)")
                }
            }
            try await awaitMade(3 * round, backend)
            switch ending {
            case .connection: backend.network.breakConnections()
            case .server:
                backend.stop()
                backend.network.breakConnections()
                try await backend.restart()
            case .device:
                try await device.kill()
                backend.network.breakConnections()
            }
            try await device.db.waitForPendingWrites()
            if ending != .device { #expect(try await answers.first(3) == ["0 0", "1 0", "2 0"]) }
            #expect(try await stored(backend) == 3 * round)
        }
        let cached = try await device.db.document("c/d").getDocument(source: .cache)
        #expect(cached.get("n") as? Int == 9)
        await device.end()
    }

    /// Connections, the server and the device end at random moments.
    @Test(arguments: TestRun.seeds(2)) func randomLossesApplyEachWriteOnce(seed: UInt64) async throws {
        var random = SeededGenerator(seed: seed)
        let backend = try Backend()
        let device = try Device(backend, isPersistent: true)
        try await device.db.document("c/d").setData(["n": 0])
        var written = 0
        func write() {
            written += 1
            device.db.document("c/d").updateData(["n": FieldValue.increment(Int64(1))], completion: nil)
        }
        for round in 0..<24 {
            // The answers to all of the round's writes are lost, or to those that the server makes before the end.
            let areAllLost = round % 4 == 0
            if areAllLost {
                write()
                try await device.db.waitForPendingWrites()
            }
            if areAllLost || random.chance(60) { backend.network.loseAnswers() }
            for _ in 0..<random.number(1..<7) { write() }
            // All of them are in the cache.
            let cached = try await device.db.document("c/d").getDocument(source: .cache)
            #expect(cached.get("n") as? Int == written, "seed \(seed), round \(round)")
            if areAllLost {
                try await awaitMade(written, backend)
            } else {
                try await Task.sleep(for: .milliseconds(random.below(60)))
            }
            switch random.below(6) {
            case 0:
                backend.stop()
                backend.network.breakConnections()
                try await backend.restart()
            case 1: try await device.kill()
            default: break
            }
            backend.network.breakConnections()
        }
        try await device.db.waitForPendingWrites()
        #expect(try await stored(backend) == written, "seed \(seed)")
        let end = try await device.db.document("c/d").getDocument(source: .server)
        #expect(end.get("n") as? Int == written, "seed \(seed)")
        await device.end()
    }

    @Test func theOutcomeIsThatOfTheFirstTime() async throws {
        let backend = try Backend()
        let (device, other) = (try Device(backend), try Device(backend))
        try await device.db.document("c/d").setData(["n": 0])
        backend.network.loseAnswers()
        let answers = Recorder<Int>()
        device.db.document("c/d").updateData(["n": 1]) { answers.append(($0 as NSError?)?.code ?? 0) }
        try await awaitMade(1, backend)
        try await device.db.disableNetwork()
        backend.network.breakConnections()
        // The precondition does not hold for a second application.
        try await other.db.document("c/d").delete()
        try await device.db.enableNetwork()
        #expect(try await answers.first(1) == [0])
        #expect(try await device.db.document("c/d").getDocument(source: .server).exists == false)
        await device.end()
        await other.end()
    }

    /// A proxy that temporarily has no route to the server does not make the client discard its stream.
    @Test(arguments: [false, true]) func aProxysAnswerIsNotTheServers(isPersistent: Bool) async throws {
        let backend = try Backend()
        let device = try Device(backend, isPersistent: isPersistent)
        try await device.db.document("c/d").setData(["n": 0])
        backend.network.loseAnswers()
        device.db.document("c/d").updateData(["n": FieldValue.increment(Int64(1))], completion: nil)
        try await awaitMade(1, backend)
        let proxy = try NotFoundServer()
        backend.network.redirect(to: proxy.port)
        backend.network.breakConnections()
        try await Waiting.until("some answers of the proxy") { proxy.requests > 2 }
        backend.network.redirect(to: backend.port)
        backend.network.breakConnections()
        proxy.close()
        try await device.db.waitForPendingWrites()
        #expect(try await stored(backend) == 1)
        await device.end()
    }

    /// The handshake of an abandoned connection arrives after the handshake of its successor.
    @Test func aLateHandshakeAppliesNothingTwice() async throws {
        let backend = try Backend()
        let device = try Device(backend)
        try await device.db.document("c/d").setData(["n": 0])
        backend.network.loseAnswers()
        for _ in 0..<10 {
            device.db.document("c/d").updateData(["n": FieldValue.increment(Int64(1))], completion: nil)
        }
        try await awaitMade(10, backend)
        backend.network.holdNew(true)
        let before = backend.network.connectionsAccepted
        backend.network.breakConnections()
        try await Waiting.until("a second connection") { backend.network.connectionsAccepted > before }
        let second = backend.network.connectionsAccepted
        backend.network.holdNew(false)
        let bytes = backend.network.bytesToClients
        try await device.db.disableNetwork()
        try await device.db.enableNetwork()
        try await Waiting.until("a third connection") { backend.network.connectionsAccepted > second }
        let third = backend.network.connectionsAccepted
        try await Waiting.until("its first answer") { backend.network.bytesToClients > bytes }
        backend.network.hold(third)
        backend.network.release(second)
        backend.network.release(third)
        try await device.db.waitForPendingWrites()
        #expect(try await stored(backend) == 10)
        await device.end()
    }

    /// The provider already returns another user's token before it reports the change.
    @Test func writesAreSentWithTheirUsersToken() async throws {
        let backend = try Backend(
            rules: """
                service cloud.firestore { match /databases/{database}/documents {
                  match /c/{d} { allow read; allow write: if request.auth.uid == 'b'; }
                } }
                """)
        let provider = LateProvider()
        let device = try Device(backend, isPersistent: true, provider: provider)
        try await device.db.disableNetwork()
        let answers = Recorder<Int>()
        device.db.document("c/d").setData(["n": 1]) { answers.append(($0 as NSError?)?.code ?? 0) }
        let asked = provider.asked
        provider.change(to: "b")
        try await device.db.enableNetwork()
        try await Waiting.until("some tokens") { provider.asked > asked + 1 }
        provider.report()
        #expect(answers.all.isEmpty)
        try await device.db.document("c/other").setData(["n": 1])
        #expect(try await stored(backend) == nil)
        provider.change(to: "a")
        provider.report()
        #expect(try await answers.first(1) == [FirestoreErrorCode.permissionDenied.rawValue])
        await device.end()
    }

    /// A power failure may lose the newest writes, of which the server has applied some. The writes that follow are not
    /// repetitions of them.
    @Test(arguments: [false, true]) func writesAfterAPowerFailureAreNotConfusedWithLostOnes(isEqual: Bool) async throws
    {
        let backend = try Backend()
        let device = try Device(backend, isPersistent: true)
        let folder = try #require(device.folder)
        let copy = TemporaryFolder()
        try await device.db.document("c/d").setData(["n": 0])
        try await device.db.terminate()
        try FileManager.default.copyItem(atPath: folder.path, toPath: "\(copy.path)/cache")
        try await device.restart()
        try await device.db.document("c/d").updateData(["n": FieldValue.increment(Int64(1))])
        backend.network.loseAnswers()
        device.db.document("c/d").updateData(["n": FieldValue.increment(Int64(1))], completion: nil)
        try await awaitMade(2, backend)
        try await device.kill {
            for name in try FileManager.default.contentsOfDirectory(atPath: folder.path) {
                try FileManager.default.removeItem(atPath: "\(folder.path)/\(name)")
            }
            for name in try FileManager.default.contentsOfDirectory(atPath: "\(copy.path)/cache") {
                try FileManager.default.copyItem(
                    atPath: "\(copy.path)/cache/\(name)", toPath: "\(folder.path)/\(name)")
            }
        }
        backend.network.breakConnections()
        try await device.db.document("c/d").updateData(["n": FieldValue.increment(Int64(isEqual ? 1 : 10))])
        #expect(try await stored(backend) == (isEqual ? 3 : 12))
        await device.end()
    }
}

/// Returns the tokens of a new user before it reports the change.
private final class LateProvider: AuthTokenProvider {
    private let uid = Mutex("a")
    private let observer = Mutex<(@Sendable (String?) -> Void)?>(nil)
    private let count = Atomic<Int>(0)

    var asked: Int { count.load(ordering: .relaxed) }

    func token(forcingRefresh isForcingRefresh: Bool) async throws -> AuthToken? {
        count.add(1, ordering: .relaxed)
        let uid = uid.withLock { $0 }
        return AuthToken(uid: uid, token: UnsignedToken.of(uid))
    }

    func observeUser(_ changed: (@Sendable (String?) -> Void)?) {
        observer.withLock { $0 = changed }
        changed?(uid.withLock { $0 })
    }

    func change(to uid: String) { self.uid.withLock { $0 = uid } }
    func report() { observer.withLock { $0 }?(uid.withLock { $0 }) }
}
