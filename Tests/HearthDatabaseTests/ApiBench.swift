import Foundation
import HearthApp
import Synchronization
import Testing

@testable import HearthDatabase

/// A way to no server: what the client does by itself.
final class NoServer: WireDriver {
    var nowMilliseconds: Int64 { Repository.nowMilliseconds }
    var monotonicMilliseconds: Int64 { Repository.nowMilliseconds }
    var random: Double { 0 }
    private let queue: DispatchQueue

    init(_ queue: DispatchQueue) { self.queue = queue }

    func start(_ machine: WireConnection) {}
    func stop() {}
    func open(attempt: Int, host: String?, lastSession: String?) {}
    func send(frame: [UInt8]) {}
    func close() {}
    func fetchToken(forcingRefresh: Bool, request: Int) {}
    func schedule(_ timer: WireTimer, afterMilliseconds: Int) {}
    func cancel(_ timer: WireTimer) {}
    func enqueue(_ work: @escaping () -> Void) {
        let carried = Carried(work)
        queue.async { carried.value() }
    }
    func log(_ message: String) {}
    func warn(_ message: String) {}
}

/// An app and a database of its own without a server, whose events come on a queue of its own.
struct ApiBench {
    let app: FirebaseApp
    let database: Database
    let queue = DispatchQueue(label: "test")

    init(url: String = "http://localhost:9000?ns=demo", _ configure: (Database) -> Void = { _ in }) throws {
        let name = "app-\(UUID())"
        try FirebaseApp.add(name: name, options: FirebaseOptions(projectID: "demo"))
        app = try #require(FirebaseApp.app(name: name))
        database = try Database.instance(
            app: app, url: url, makeDriver: { _, queue in NoServer(queue) }, environment: [:])
        database.callbackQueue = queue
        configure(database)
    }

    /// Waits until what was asked for has been done, and what came of it has been told.
    func settle() async {
        for _ in 0..<3 {
            await withCheckedContinuation { continuation in
                database.repository.queue.async { continuation.resume() }
            }
            await withCheckedContinuation { continuation in
                database.repository.deliver { continuation.resume() }
            }
        }
    }
}

/// In an `async` function Swift takes the `async` form of a call that has both; within this the plain one, which waits for
/// nothing.
func plainly(_ body: () -> Void) { body() }
