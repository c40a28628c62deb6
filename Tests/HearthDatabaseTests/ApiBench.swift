import Foundation
import HearthApp
import Synchronization
import Testing

@testable import HearthDatabase

/// A connection without a server, to test the client alone.
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

/// An app and a database without a server, with a queue of their own for events.
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

    /// Waits until all requested work is done, and its events are delivered.
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

/// In an `async` function Swift selects the `async` form of a call that has both; within this closure the plain one,
/// which does not wait.
func plainly(_ body: () -> Void) { body() }
