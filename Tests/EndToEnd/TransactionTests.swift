import Foundation
import HearthFirestore
import HearthTestSupport
import Testing

@Suite(.timeLimit(.minutes(Patience.minutes))) struct TransactionTests {
    /// Adds one to `n` and returns the result.
    private func increment(_ db: Firestore) async throws -> Int? {
        try await db.runTransaction { [db] transaction, errorPointer in
            let counter = db.document("c/counter")
            do {
                let n = try transaction.getDocument(counter).get("n") as? Int ?? 0
                transaction.setData(["n": n + 1], forDocument: counter)
                return n + 1
            } catch {
                errorPointer?.pointee = error as NSError
                return nil
            }
        } as? Int
    }

    @Test func twoDevicesIncrementOneCounter() async throws {
        let backend = try Backend()
        let devices = [try Device(backend), try Device(backend)]
        let eachCount = 8
        // The devices' listeners only see the number increase.
        let (seen, registration) = devices[0].db.collection("c").record()
        let made = try await withThrowingTaskGroup(of: [Int].self) { group in
            for device in devices {
                group.addTask {
                    var made: [Int] = []
                    // A transaction that fails after five attempts is started again: contention has no bound.
                    while made.count < eachCount {
                        do {
                            made.append(try #require(try await increment(device.db)))
                        } catch FirestoreErrorCode.failedPrecondition {
                        } catch FirestoreErrorCode.aborted {
                        }
                    }
                    return made
                }
            }
            return try await group.reduce(into: []) { $0 += $1 }
        }
        #expect(made.sorted() == Array(1...(2 * eachCount)))
        for device in devices {
            #expect(
                try await device.db.document("c/counter").getDocument(source: .server).get("n") as? Int == 2 * eachCount
            )
        }
        let last = try await seen.latest { $0.string == "counter=\(2 * eachCount)" }
        #expect(last.error == nil)
        let numbers = seen.all.compactMap { $0.snapshot?.documents.first?.get("n") as? Int }
        #expect(numbers == numbers.sorted())
        registration.remove()
        for device in devices { await device.end() }
    }

    @Test func errorsOfTheBlockEndIt() async throws {
        let backend = try Backend()
        let device = try Device(backend)
        let db = device.db
        try await db.document("c/a").setData(["n": 1])
        let own = NSError(domain: "own", code: 7)
        await #expect {
            try await db.runTransaction { transaction, errorPointer in
                transaction.setData(["n": 2], forDocument: db.document("c/a"))
                errorPointer?.pointee = own
                return nil
            }
        } throws: { error in (error as NSError).domain == "own" }
        #expect(try await db.document("c/a").getDocument().get("n") as? Int == 1)
        await device.end()
    }

    @Test func readsAndWritesOfSeveralDocuments() async throws {
        let backend = try Backend()
        let (one, two) = (try Device(backend), try Device(backend))
        try await one.db.document("accounts/a").setData(["n": 10])
        try await one.db.document("accounts/b").setData(["n": 0])
        try await one.db.document("accounts/old").setData(["n": 0])
        let db = one.db
        _ = try await db.runTransaction { transaction, errorPointer in
            do {
                let (a, b, c) = (db.document("accounts/a"), db.document("accounts/b"), db.document("accounts/c"))
                let amount = try transaction.getDocument(a).get("n") as? Int ?? 0
                let there = try transaction.getDocument(c).exists
                transaction.updateData(["n": 0], forDocument: a)
                transaction.updateData(["n": FieldValue.increment(Int64(amount))], forDocument: b)
                if !there { transaction.setData(["n": 5], forDocument: c) }
                transaction.deleteDocument(db.document("accounts/old"))
            } catch {
                errorPointer?.pointee = error as NSError
            }
            return nil
        }
        let snapshot = try await two.db.collection("accounts").getDocuments(source: .server)
        #expect(QueryEvent(snapshot: snapshot).string == "a=0 b=10 c=5")
        await one.end()
        await two.end()
    }
}
