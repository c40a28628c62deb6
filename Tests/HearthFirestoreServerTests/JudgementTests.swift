@testable import HearthConcurrency
@testable import HearthFirestoreServer
import HearthTestSupport
import HearthModel
import HearthNetwork
import HearthDocuments
import HearthWire
import Synchronization
import Testing

@testable import HearthHost

@Suite("Judgements about listeners")
struct JudgementTests {
    private static let rules = """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{database}/documents {
            match /c/{id} { allow read: if get(/databases/$(database)/documents/flags/f).data.open == true
              || request.auth.uid == 'boss'; }
          }
        }
        """

    private static func user(_ uid: String) -> Identity {
        .client(ClientIdentity(uid: uid, token: MapValue(), end: nil, projects: .all))
    }

    @Test("are made once per commit for identities that rules cannot distinguish")
    func once() async throws {
        let clock = CountingClock()
        let bench = try StreamBench(rules: Self.rules, clock: clock)
        try await bench.database.put("flags/f", ["open": .boolean(true)])
        try await bench.database.put("c/1", ["n": .integer(1)])
        var calls: [TestCall] = []
        for (index, identity) in [Self.user("a"), Self.user("a"), Self.user("boss"), .nobody, .owner].enumerated() {
            let call = await bench.listen(identity: identity, connection: UInt64(index))
            for id in 1...50 { await call.ask(StreamBench.add(id, documents: ["c/1"])) }
            for id in 51...60 { await call.ask(StreamBench.add(id, limit: 5)) }
            await until { call.current.count == 60 }
            calls.append(call)
        }
        let before = clock.asked.load(ordering: .relaxed)
        try await bench.database.put("flags/f", ["open": .boolean(true), "again": .integer(1)])
        // A commit that concerns all targets ends after the judgements.
        try await bench.database.put("c/1", ["n": .integer(2)])
        for call in calls {
            await until { call.shown(2).count == 60 }
            #expect(call.refused.isEmpty)
        }
        // For each commit: two subjects of four identities, of which the owner is not judged.
        #expect(clock.asked.load(ordering: .relaxed) - before <= 2 * 2 * 3)

        try await bench.database.put("flags/f", ["open": .boolean(false)])
        for (index, call) in calls.enumerated() {
            if index == 2 || index == 4 { continue }
            await until { call.refused.count == 60 }
            #expect(Set(call.refused.values) == [Int32(Status.Code.permissionDenied.rawValue)])
        }
        // The permissions of one identity do not affect another one.
        try await bench.database.put("c/1", ["n": .integer(3)])
        for index in [2, 4] {
            await until { calls[index].shown(3).count == 60 }
            #expect(calls[index].refused.isEmpty)
        }
        for index in [0, 1, 3] { #expect(calls[index].shown(3).isEmpty) }
        for call in calls { await call.leave() }
    }

    @Test("of identities that rules distinguish are separate")
    func identities() {
        func with(_ name: String, _ value: Int64) -> Identity {
            let token = MapValue([MapValue.Field(name: name, value: .integer(value))])
            return .client(ClientIdentity(uid: "a", token: token, end: nil, projects: .all))
        }
        let all: [Identity] = [
            .nobody, .owner, Self.user(""), Self.user("a"), Self.user("a\u{0}"), with("x", 1), with("x", 2),
            .administrator(AdministratorScope(project: "p")),
            .administrator(AdministratorScope(project: nil, isReadOnly: true)),
        ]
        #expect(Set(all.map(\.asJudged)).count == all.count)
        #expect(Self.user("a").asJudged == Self.user("a").asJudged)
    }
}

extension TestCall {
    /// Targets that have shown a document with this number.
    fileprivate func shown(_ number: Int64) -> Set<Int32> {
        let changes = responses.compactMap(\.documentChange)
        return Set(changes.filter { $0.document?.fields["n"] == .integer(number) }.flatMap(\.targetIds))
    }
}
