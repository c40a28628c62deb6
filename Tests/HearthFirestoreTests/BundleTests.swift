import Foundation
import HearthModel
import HearthSync
import HearthTestSupport
import Testing

@testable import HearthFirestore

struct BundleTests {
    private let bench: Bench
    private let steps: [(BundleProgress, Status?)] = [
        (BundleProgress(documentsLoaded: 0, totalDocuments: 1, bytesLoaded: 0, totalBytes: 9, state: .inProgress), nil),
        (BundleProgress(documentsLoaded: 1, totalDocuments: 1, bytesLoaded: 9, totalBytes: 9, state: .success), nil),
    ]

    init() throws { bench = try Bench() }

    @Test func observersThenCompletion() async {
        let engine = bench.engine
        engine.state.with { $0.bundleProgress = steps }
        let received = Locked<[String]>([])
        // Nothing runs before the observers are added.
        bench.firestore.engineQueue.suspend()
        let task = bench.firestore.loadBundle(Data("123456789".utf8)) { progress, error in
            received.with { $0.append("done \(progress?.documentsLoaded ?? -1) \(error == nil)") }
        }
        task.addObserver { progress in received.with { $0.append("a \(progress.bytesLoaded)") } }
        let removed = task.addObserver { _ in received.with { $0.append("removed") } }
        task.addObserver { progress in received.with { $0.append("b \(progress.bytesLoaded)") } }
        task.removeObserverWith(handle: removed)
        bench.firestore.engineQueue.resume()
        #expect(await eventually { received.with { $0.count == 5 } })
        #expect(received.with { $0 } == ["a 0", "b 0", "a 9", "b 9", "done 1 true"])
        #expect(engine.state.with { $0.bundleBytes } == Array("123456789".utf8))
    }

    @Test func aLateObserverReceivesTheEnd() async {
        bench.engine.state.with { $0.bundleProgress = steps }
        let received = Locked<[String]>([])
        let task = bench.firestore.loadBundle(Data("123456789".utf8)) { _, _ in received.with { $0.append("done") } }
        #expect(await eventually { received.with { $0 == ["done"] } })
        task.addObserver { progress in received.with { $0.append("late \(progress.bytesLoaded) \(progress.state)") } }
        #expect(await eventually { received.with { $0 == ["done", "late 9 success"] } })
    }

    @Test func errors() async {
        let error = Status.invalidArgument("no bundle")
        bench.engine.state.with { $0.bundleProgress = [(BundleProgress(state: .error), error)] }
        let (state, code) = await withCheckedContinuation { continuation in
            bench.firestore.loadBundle(Data()) { progress, error in
                continuation.resume(returning: (progress?.state, (error as NSError?)?.code))
            }
        }
        #expect(state == .error)
        #expect(code == 3)
        await #expect(throws: NSError.self) { try await bench.firestore.loadBundle(Data()) }
    }

    @Test func streams() async throws {
        let engine = bench.engine
        engine.state.with { $0.bundleProgress = steps }
        let bytes = Data((0..<100).map { UInt8($0) })
        let progress = try await bench.firestore.loadBundle(InputStream(data: bytes))
        #expect(progress.state == .success)
        #expect(engine.state.with { $0.bundleBytes } == [UInt8](bytes))
    }

    @Test func namedQueries() async {
        let stored = bench.firestore.collection("c").limit(to: 3)
        bench.engine.state.with { $0.namedQueries = ["latest": stored.model] }
        #expect(await bench.firestore.getQuery(named: "latest") == stored)
        #expect(await bench.firestore.getQuery(named: "other") == nil)
    }
}
