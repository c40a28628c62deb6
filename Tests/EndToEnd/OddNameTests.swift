import Foundation
import HearthFirestore
import HearthTestSupport
import Testing

/// A call with data that every server rejects fails alone, with every kind of cache, also after a restart.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct OddNameTests {
    private static func nested(_ levels: Int) -> [String: Any] {
        var value: [String: Any] = ["n": 1]
        for _ in 1..<levels { value = ["m": value] }
        return value
    }

    private static let long = String(repeating: "x", count: 1501)
    private static let ids = ["__x__", "__proto__", ".", "..", long, String(repeating: "é", count: 751)]
    /// 6 KiB of ids, each of which is valid.
    private static let far = (0..<6).map { _ in String(repeating: "y", count: 1400) }.joined(separator: "/")

    private static func paths() -> [String] {
        ids.map { "one/\($0)" } + ids.map { "\($0)/one" } + [far]
    }

    /// Writes that are invalid for reasons other than the document's name.
    private static let writes: [(name: String, write: @Sendable (DocumentReference) async throws -> Void)] = [
        ("a long field", { try await $0.setData([long: 1]) }),
        ("21 levels", { try await $0.setData(nested(22)) }),
        ("60 levels", { try await $0.setData(nested(60)) }),
        ("a list of 60 levels", { try await $0.setData(["l": [nested(60)]]) }),
        ("a path of 21 names", { try await $0.updateData([FieldPath((0..<21).map { "f\($0)" }): 1]) }),
        ("a long path", { try await $0.setData(["m": [long: 1]], mergeFields: [FieldPath(["m", long])]) }),
        ("a union of 60 levels", { try await $0.setData(["l": FieldValue.arrayUnion([nested(60)])]) }),
    ]

    @Test(arguments: [false, true]) func costTheirOwnCall(isPersistent: Bool) async throws {
        let backend = try Backend()
        let device = try Device(backend, isPersistent: isPersistent)
        for isOnline in [true, false] {
            try await isOnline ? device.db.enableNetwork() : device.db.disableNetwork()
            for path in Self.paths() {
                await #expect("\(path.prefix(30))") {
                    try await device.db.document(path).setData(["n": 1])
                } throws: { FirestoreErrorCode.invalidArgument ~= $0 }
                await #expect("\(path.prefix(30))") {
                    try await device.db.document(path).delete()
                } throws: { FirestoreErrorCode.invalidArgument ~= $0 }
            }
            for (name, write) in Self.writes {
                await #expect("\(name)") {
                    try await write(device.db.document("c/odd"))
                } throws: { FirestoreErrorCode.invalidArgument ~= $0 }
            }
            // One invalid write fails the whole batch.
            let batch = device.db.batch()
            batch.setData(["n": 1], forDocument: device.db.document("c/batch"))
            batch.setData(["n": 1], forDocument: device.db.document("c/__x__"))
            await #expect { try await batch.commit() } throws: { FirestoreErrorCode.invalidArgument ~= $0 }
        }
        // Other pending writes are sent, after a restart if the cache is on the disk.
        for n in 0..<5 { device.db.document("c/good\(n)").setData(["n": n]) { _ in } }
        if isPersistent {
            try await device.restart()
        } else {
            try await device.db.enableNetwork()
        }
        try await device.db.waitForPendingWrites()
        let found = try await device.db.collection("c").getDocuments(source: .server)
        #expect(found.documents.map(\.documentID) == (0..<5).map { "good\($0)" })
        await device.end()
    }

    /// Requests that exceed the maximal size, of documents each of which is valid.
    @Test(arguments: [false, true]) func requestsThatAreTooLargeFail(isPersistent: Bool) async throws {
        let backend = try Backend()
        let device = try Device(backend, isPersistent: isPersistent)
        let db = device.db
        let filling = String(repeating: "x", count: 900_000)
        let batch = db.batch()
        for n in 0..<20 { batch.setData(["s": filling], forDocument: db.document("c/\(n)")) }
        await #expect { try await batch.commit() } throws: { FirestoreErrorCode.invalidArgument ~= $0 }
        await #expect {
            _ = try await db.runTransaction { transaction, _ in
                for n in 0..<20 { transaction.setData(["s": filling], forDocument: db.document("c/\(n)")) }
                return nil
            }
        } throws: { FirestoreErrorCode.invalidArgument ~= $0 }
        try await db.document("c/good").setData(["n": 1])
        #expect(try await db.collection("c").getDocuments(source: .server).documents.map(\.documentID) == ["good"])
        await device.end()
    }

    private static func queries(_ db: Firestore) -> [(name: String, query: Query)] {
        let c = db.collection("c")
        return ids.map { ("in \($0.prefix(10))", db.collection($0)) }
            + ids.map { ("group \($0.prefix(10))", db.collectionGroup($0)) }
            + [
                ("below a far document", db.document(far).collection("c")),
                ("a long field", c.whereField(FieldPath([long]), isEqualTo: 1)),
                ("a reserved field", c.order(by: FieldPath(["a", "__x__"]))),
                ("a path of 21 names", c.order(by: FieldPath((0..<21).map { "f\($0)" }))),
                ("a filter of 60 levels", c.whereField("m", isEqualTo: nested(60))),
                ("a list of 60 levels", c.whereField("m", in: [nested(60)])),
                ("a cursor of 60 levels", c.order(by: "m").start(at: [nested(60)])),
            ]
    }

    @Test(arguments: [false, true]) func queriesFailAlone(isPersistent: Bool) async throws {
        let backend = try Backend()
        let device = try Device(backend, isPersistent: isPersistent)
        try await device.db.document("c/a").setData(["n": 1])
        let (good, goodRegistration) = device.db.collection("c").record()
        try await good.latest { $0.string == "a=1" }
        var n = 1
        for (name, query) in Self.queries(device.db) {
            let (received, registration) = query.record()
            #expect(try await received.first(1).map(\.string) == ["error 3"], "\(name)")
            await #expect("\(name)") {
                try await query.getDocuments()
            } throws: { FirestoreErrorCode.invalidArgument ~= $0 }
            await #expect("\(name)") {
                try await query.count.getAggregation(source: .server)
            } throws: { FirestoreErrorCode.invalidArgument ~= $0 }
            // The valid listener is not affected.
            n += 1
            try await device.db.document("c/a").setData(["n": n])
            try await good.latest { $0.string == "a=\(n)" }
            #expect(received.all.count == 1, "\(name)")
            registration.remove()
        }
        for path in Self.paths() {
            await #expect("\(path.prefix(30))") {
                try await device.db.document(path).getDocument()
            } throws: { FirestoreErrorCode.invalidArgument ~= $0 }
        }
        goodRegistration.remove()
        if isPersistent {
            try await device.restart()
            #expect(
                QueryEvent(snapshot: try await device.db.collection("c").getDocuments(source: .cache)).string
                    == "a=\(n) cache"
            )
        }
        await device.end()
    }
}
