import Foundation
import HearthFirestore
import HearthTestSupport
import Testing

/// A read after a write of the same program has the write, whichever of the server's answers arrives first.
@Suite(.timeLimit(.minutes(Patience.minutes))) struct OwnWriteTests {
    @Test(arguments: [false, true]) func readsHaveWritesThatAreUnderWay(isPersistent: Bool) async throws {
        let backend = try Backend()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<20 {
                group.addTask {
                    for n in 0..<10 {
                        // Of a new client and a database without documents, the server's first state and its answer to the
                        // write arrive in either order.
                        let device = try Device(backend, isPersistent: isPersistent)
                        let db = device.database("own-\(UUID().uuidString.lowercased())")
                        let document = db.document("c/d")
                        document.setData(["n": n], completion: nil)
                        let read = try await document.getDocument()
                        #expect(read.get("n") as? Int == n && !read.metadata.isFromCache)
                        await device.end()
                    }
                }
            }
            try await group.waitForAll()
        }
    }
}
