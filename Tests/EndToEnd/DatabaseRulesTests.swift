import Foundation
import HearthDatabase
import HearthTestSupport
import Testing

@Suite(.timeLimit(.minutes(Patience.minutes))) struct DatabaseRulesTests {
    private static let rules = #"""
        {
          "rules": {
            "public": {".read": true, ".write": true, ".indexOn": ["n"]},
            "users": {
              "$uid": {
                ".read": "auth != null && auth.uid === $uid",
                ".write": "auth != null && auth.uid === $uid",
                ".validate": "newData.hasChildren(['name'])"
              }
            }
          }
        }
        """#

    private func code(_ body: () async throws -> Void) async -> Int {
        do {
            try await body()
            return 0
        } catch {
            let error = error as NSError
            #expect(error.domain == "com.firebase" || error.domain == "com.firebase.core")
            return error.code
        }
    }

    @Test func failedWritesAreReverted() async throws {
        let backend = try Backend(databaseRules: Self.rules)
        let device = try DatabaseDevice(backend)
        let received = device.ref("users/ada").record(.value)
        #expect(try await received.recorder.first(1) == ["error 1"])
        #expect(await code { try await device.ref("users/ada").setValue(["name": "x"]) } == 1)
        #expect(await code { try await device.ref("secret").setValue(1) } == 1)
        #expect(await code { _ = try await device.ref("secret").getData() } == 1)
        #expect(await code { try await device.ref("users/ada").onDisconnectSetValue(1) } == 1)
        #expect(await code { _ = try await device.ref("secret").runTransactionBlock { .success(withValue: $0) } } == 1)
        let seen = Recorder<String>()
        plainly {
            let ref = device.ref("public/x")
            ref.observe(.value) { seen.append("value \($0.string)") }
        }
        try await seen.latest { $0 == "value null" }
        // One of two paths is not permitted: nothing is written.
        plainly {
            device.ref().updateChildValues(["public/x": 1, "secret": 2]) { error, _ in
                seen.append("error \((error as NSError?)?.code ?? 0)")
            }
        }
        try await seen.latest { $0 == "error 1" }
        #expect(seen.all == ["value null", "value 1", "value null", "error 1"])
        await device.end()
    }

    @Test func users() async throws {
        let backend = try Backend(databaseRules: Self.rules)
        let (ada, bob) = (try DatabaseDevice(backend), try DatabaseDevice(backend))
        try await ada.waitUntil(connected: true)
        try await ada.signIn("ada")
        // It takes effect at once, for the new user.
        try await ada.ref("users/ada").setValue(["name": "Ada"])
        let received = ada.ref("users/ada").record(.value)
        try await received.recorder.latest { $0 == "ada: {name: Ada}" }
        #expect(await code { try await ada.ref("users/ada").setValue(["nick": "x"]) } == 1, ".validate")
        try await bob.signIn("bob")
        try await bob.ref("users/bob").setValue(["name": "Bob"])
        #expect(await code { _ = try await bob.ref("users/ada").getData() } == 1)
        #expect(await code { try await bob.ref("users/ada/name").setValue("x") } == 1)
        // A user who signs out loses their listeners.
        try Auth.auth(app: ada.app).signOut()
        try await received.recorder.latest { $0 == "error 1" }
        #expect(await code { try await ada.ref("users/ada").setValue(["name": "x"]) } == 1)
        try await ada.signIn("ada")
        #expect(try await ada.ref("users/ada/name").getData().string == "Ada")
        await ada.end()
        await bob.end()
    }

    @Test func tokensThatExpire() async throws {
        let backend = try Backend(databaseRules: Self.rules, secret: "a secret of thirty-two characters")
        let owner = try DatabaseDevice(backend, namespace: "\(Backend.project)-default-rtdb")
        // Servers accept a token for a minute after its end: this one for three seconds more.
        let token = try backend.token(of: "ada", seconds: -57)
        try await Auth.auth(app: owner.app).signIn(withCustomToken: token)
        let refreshes = Recorder<Int>()
        Auth.auth(app: owner.app).setTokenRefresh {
            refreshes.append(1)
            return try backend.token(of: "ada", seconds: 3600)
        }
        try await owner.ref("users/ada").setValue(["name": "Ada"])
        try await refreshes.first(1)
        try await owner.ref("users/ada").setValue(["name": "Ada II"])
        #expect(try await owner.ref("users/ada/name").getData().string == "Ada II")
        await owner.end()
    }

    @Test func indexes() async throws {
        let backend = try Backend(databaseRules: Self.rules)
        let device = try DatabaseDevice(backend)
        try await device.ref("public").setValue(["a": ["n": 2, "m": 1], "b": ["n": 1, "m": 2]])
        #expect(
            try await device.ref("public").queryOrdered(byChild: "n").queryLimited(toFirst: 1).getData().string
                == "{b: {m: 2, n: 1}}")
        // Without an index observers work, and single reads fail.
        let received = device.ref("public").queryOrdered(byChild: "m").queryLimited(toFirst: 1).record(.value)
        try await received.recorder.latest { $0 == "public: {a: {m: 1, n: 2}}" }
        let other = try DatabaseDevice(backend)
        await #expect {
            _ = try await other.ref("public").queryOrdered(byChild: "m").queryLimited(toFirst: 1).getData()
        } throws: { ($0 as NSError).localizedFailureReason?.contains("Index not defined") == true }
        await device.end()
        await other.end()
    }
}
