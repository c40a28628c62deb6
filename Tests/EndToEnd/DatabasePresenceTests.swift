import Foundation
import HearthDatabase
import HearthTestSupport
import Testing

@Suite(.timeLimit(.minutes(Patience.minutes))) struct DatabasePresenceTests {
    @Test(arguments: [true, false])
    func onDisconnectRunsWhenTheClientIsLost(_ isBroken: Bool) async throws {
        let backend = try Backend()
        let (one, two) = (try DatabaseDevice(backend), try DatabaseDevice(backend))
        let seen = two.ref("status/ada").record(.value)
        let ref = one.ref("status/ada")
        try await ref.onDisconnectSetValue(["online": false, "last": ServerValue.timestamp()] as [String: Any])
        try await ref.setValue(["online": true])
        try await seen.recorder.latest { $0 == "ada: {online: true}" }
        // The client itself also receives the event of its own disconnection.
        let own = ref.record(.value)
        try await own.recorder.latest { $0 == "ada: {online: true}" }
        if isBroken { backend.network.breakConnections() } else { one.db.goOffline() }
        try await seen.recorder.latest { $0.hasPrefix("ada: {last: 1") && $0.hasSuffix("online: false}") }
        try await own.recorder.first { $0.hasSuffix("online: false}") }
        await one.end()
        await two.end()
    }

    @Test func updatesAndCancelling() async throws {
        let backend = try Backend()
        let (one, two) = (try DatabaseDevice(backend), try DatabaseDevice(backend))
        let ref = one.ref("a")
        let seen = two.ref("a").record(.value)
        try await ref.onDisconnectSetValue(["bar": 1, "baz": 2])
        try await ref.onDisconnectUpdateChildValues(["bam": 3])
        try await ref.child("baz").onDisconnectRemoveValue()
        try await ref.child("other").onDisconnectSetValue(4)
        try await ref.child("other").cancelDisconnectOperations()
        try await one.ref("b").onDisconnectSetValue(1, andPriority: nil as Any?)
        try await one.ref("b").cancelDisconnectOperations()
        one.db.goOffline()
        try await seen.recorder.latest { $0 == "a: {bam: 3, bar: 1}" }
        #expect(seen.recorder.all.filter { $0 != "a: null" }.count == 1, "it is one change")
        #expect(try await two.ref("b").getData().exists() == false)
        await one.end()
        await two.end()
    }

    /// The presence example of the Firebase documentation, "Enabling Offline Capabilities on Apple Platforms".
    @Test func presence() async throws {
        let backend = try Backend()
        let (one, two) = (try DatabaseDevice(backend), try DatabaseDevice(backend))
        let connections = one.ref("users/ada/connections")
        let lastOnline = one.ref("users/ada/lastOnline")
        one.ref(".info/connected").observe(.value) { snapshot in
            guard snapshot.value as? Bool == true else { return }
            let connection = connections.childByAutoId()
            connection.onDisconnectRemoveValue()
            connection.setValue(true)
            lastOnline.onDisconnectSetValue(ServerValue.timestamp())
        }
        let seen = two.ref("users/ada").record(.value)
        try await seen.recorder.latest { $0.contains("connections: {-") && !$0.contains("lastOnline") }
        backend.network.breakConnections()
        // It reconnects automatically, with another connection id.
        try await seen.recorder.latest { $0.contains("connections: {-") && $0.contains("lastOnline: ") }
        one.db.goOffline()
        try await seen.recorder.latest { !$0.contains("connections") && $0.contains("lastOnline: ") }
        await one.end()
        await two.end()
    }
}
