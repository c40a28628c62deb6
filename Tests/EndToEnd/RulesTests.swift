import Foundation
import HearthFirestore
import HearthTestSupport
import Testing

/// The effects of security rules on programs.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct RulesTests {
    static let rules = """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{database}/documents {
            function mine(data) { return request.auth != null && data.owner == request.auth.uid; }
            match /notes/{id} {
              allow read: if mine(resource.data);
              allow create: if mine(request.resource.data);
              allow update, delete: if mine(resource.data);
            }
            match /posts/{id} {
              allow read;
              allow create: if mine(request.resource.data) && request.resource.data.n < 100;
              allow update: if mine(resource.data) && request.resource.data.n < 100;
              allow delete: if mine(resource.data);
            }
          }
        }
        """

    private func isDenied(_ error: any Error) -> Bool { FirestoreErrorCode.permissionDenied ~= error }

    @Test func onlyOwnersReadAndWrite() async throws {
        let backend = try Backend(rules: Self.rules)
        let (eva, ben, nobody) = (try Device(backend), try Device(backend), try Device(backend))
        try await eva.signIn("eva")
        try await ben.signIn("ben")
        try await eva.db.document("notes/1").setData(["owner": "eva", "n": 1])
        try await ben.db.document("notes/2").setData(["owner": "ben", "n": 2])
        #expect(try await eva.db.document("notes/1").getDocument(source: .server).get("n") as? Int == 1)
        for (device, path) in [(ben, "notes/1"), (nobody, "notes/1"), (eva, "elsewhere/1")] {
            await #expect { try await device.db.document(path).getDocument(source: .server) } throws: { isDenied($0) }
            await #expect { try await device.db.document(path).updateData(["n": 3]) } throws: { isDenied($0) }
            await #expect { try await device.db.document(path).delete() } throws: { isDenied($0) }
        }
        await #expect { try await ben.db.document("notes/3").setData(["owner": "eva"]) } throws: { isDenied($0) }
        let notes = eva.db.collection("notes")
        await #expect { try await notes.getDocuments(source: .server) } throws: { isDenied($0) }
        let own = notes.whereField("owner", isEqualTo: "eva")
        #expect(QueryEvent(snapshot: try await own.getDocuments(source: .server)).string == "1=1")
        #expect(try await own.count.getAggregation(source: .server).count == 1)
        await #expect { try await notes.count.getAggregation(source: .server) } throws: { isDenied($0) }
        let db = ben.db
        await #expect {
            try await db.runTransaction { transaction, errorPointer in
                do {
                    _ = try transaction.getDocument(db.document("notes/1"))
                } catch {
                    errorPointer?.pointee = error as NSError
                }
                return nil
            }
        } throws: { isDenied($0) }
        for device in [eva, ben, nobody] { await device.end() }
    }

    @Test func rejectedListensEndWithTheError() async throws {
        let backend = try Backend(rules: Self.rules)
        let device = try Device(backend)
        let query = device.db.collection("notes").whereField("owner", isEqualTo: "eva")
        let (rejected, first) = query.record()
        #expect(
            try await rejected.latest { $0.error != nil }.error?.code == FirestoreErrorCode.permissionDenied.rawValue)
        let count = rejected.all.count
        // Other listeners on the same stream continue, and a new listener with the same query may succeed.
        let (posts, second) = device.db.collection("posts").record()
        try await posts.latest { $0.string == "" }
        try await device.signIn("eva")
        let (allowed, third) = query.record()
        try await allowed.latest { $0.string == "" }
        try await device.db.document("notes/a").setData(["owner": "eva", "n": 1])
        try await allowed.latest { $0.string == "a=1" }
        #expect(rejected.all.count == count)
        for registration in [first, second, third] { registration.remove() }
        await device.end()
    }

    @Test func failedWritesAreReverted() async throws {
        let backend = try Backend(rules: Self.rules)
        let device = try Device(backend)
        try await device.signIn("eva")
        let posts = device.db.collection("posts")
        try await posts.document("a").setData(["owner": "eva", "n": 1])
        let (received, registration) = posts.record()
        try await received.latest { $0.string == "a=1" }
        let known = received.all.count
        await #expect { try await posts.document("a").updateData(["n": 100]) } throws: { isDenied($0) }
        let events = try await received.first(known + 2).dropFirst(known)
        #expect(events.map(\.string) == ["a=100* pending", "a=1"])
        #expect(events.map(\.changes) == ["~a", "~a"])

        // Offline all writes are shown; the server accepts some of them.
        try await device.db.disableNetwork()
        try await received.latest { $0.string == "a=1 cache" }
        let answers = Recorder<String>()
        posts.document("b").setData(["owner": "eva", "n": 2]) {
            answers.append("b \($0.map { isDenied($0) } ?? false)")
        }
        posts.document("c").setData(["owner": "ben", "n": 3]) {
            answers.append("c \($0.map { isDenied($0) } ?? false)")
        }
        let batch = device.db.batch()
        batch.deleteDocument(posts.document("a"))
        batch.setData(["owner": "ben"], forDocument: posts.document("d"))
        batch.commit { answers.append("batch \($0.map { isDenied($0) } ?? false)") }
        posts.document("b").updateData(["n": 4]) { answers.append("b2 \($0.map { isDenied($0) } ?? false)") }
        try await received.latest { $0.string == "b=4* c=3* d=-* pending cache" }
        try await device.db.enableNetwork()
        try await device.db.waitForPendingWrites()
        #expect(try await answers.first(4) == ["b false", "c true", "batch true", "b2 false"])
        try await received.latest { $0.string == "a=1 b=4" }
        #expect(QueryEvent(snapshot: try await posts.getDocuments(source: .server)).string == "a=1 b=4")
        #expect(QueryEvent(snapshot: try await posts.getDocuments(source: .cache)).string == "a=1 b=4 cache")
        registration.remove()
        await device.end()
    }

    @Test func twoUsersOfOneDeviceHaveQueuesOfTheirOwn() async throws {
        let backend = try Backend(rules: Self.rules)
        let device = try Device(backend, isPersistent: true)
        let witness = try Device(backend, provider: OwnerToken())
        func there() async throws -> String {
            QueryEvent(snapshot: try await witness.db.collection("posts").getDocuments(source: .server)).string
        }
        func here() async throws -> String {
            QueryEvent(snapshot: try await device.db.collection("posts").getDocuments(source: .cache)).string
        }
        try await device.signIn("eva")
        try await device.db.disableNetwork()
        let answers = Recorder<String>()
        device.db.document("posts/e").setData(["owner": "eva", "n": 1]) { answers.append("e \($0 == nil)") }
        #expect(try await here() == "e=1* pending cache")

        try await device.signIn("ben")
        // Another user's pending writes are not shown.
        #expect(try await here() == "cache")
        device.db.document("posts/b").setData(["owner": "ben", "n": 2]) { answers.append("b \($0 == nil)") }
        #expect(try await here() == "b=2* pending cache")
        try await device.restart()
        #expect(try await here().hasPrefix("b=2"))
        try await device.db.waitForPendingWrites()
        #expect(try await there() == "b=2")

        try await device.signIn("eva")
        try await device.db.waitForPendingWrites()
        #expect(try await there() == "b=2 e=1")
        let posts = device.db.collection("posts")
        #expect(QueryEvent(snapshot: try await posts.getDocuments(source: .server)).string == "b=2 e=1")
        // Sent with Eva's token: Ben has no permission.
        try await device.signIn("ben")
        await #expect { try await posts.document("e").updateData(["n": 5]) } throws: { isDenied($0) }
        try Auth.auth(app: device.app).signOut()
        await #expect { try await posts.document("b").updateData(["n": 5]) } throws: { isDenied($0) }
        #expect(try await there() == "b=2 e=1")
        await device.end()
        await witness.end()
    }

    @Test func listenersFollowTheUser() async throws {
        let backend = try Backend(rules: Self.rules)
        let device = try Device(backend)
        try await device.signIn("eva")
        let (received, registration) = device.db.collection("posts").record()
        try await device.db.document("posts/e").setData(["owner": "eva", "n": 1])
        try await received.latest { $0.string == "e=1" }
        try await device.db.disableNetwork()
        device.db.document("posts/e").updateData(["n": 2], completion: nil)
        try await received.latest { $0.string == "e=2* pending cache" }
        try await device.signIn("ben")
        try await received.latest { $0.string == "e=1 cache" }
        try await device.signIn("eva")
        try await received.latest { $0.string == "e=2* pending cache" }
        try await device.db.enableNetwork()
        try await received.latest { $0.string == "e=2" }
        registration.remove()
        await device.end()
    }

    @Test func expiredTokensAreReplaced() async throws {
        let secret = "a secret of at least thirty-two bytes"
        let backend = try Backend(rules: Self.rules, secret: secret)
        let device = try Device(backend)
        let posts = device.db.collection("posts")
        // Only servers for local development accept unsigned tokens and owner tokens.
        try await device.signIn("eva")
        await #expect { try await posts.document("a").getDocument(source: .server) } throws: { !isDenied($0) }

        let auth = Auth.auth(app: device.app)
        try await auth.signIn(withCustomToken: try backend.token(of: "eva", seconds: 3600))
        try await posts.document("a").setData(["owner": "eva", "n": 1])
        let (received, registration) = posts.record()
        try await received.latest { $0.string == "a=1" }

        let refreshes = Recorder<String>()
        auth.setTokenRefresh {
            refreshes.append("refreshed")
            return try backend.token(of: "eva", seconds: 3600)
        }
        try await auth.signIn(withCustomToken: try backend.token(of: "eva", seconds: -7200))
        try await posts.document("b").setData(["owner": "eva", "n": 2])
        try await received.latest { $0.string == "a=1 b=2" }
        #expect(!refreshes.all.isEmpty)
        #expect(try await posts.count.getAggregation(source: .server).count == 2)
        #expect(!received.all.contains { $0.error != nil }, "\(received.all)")
        registration.remove()
        await device.end()
    }
}
