import Foundation
import HearthConcurrency
import HearthEvents
import HearthModel
import HearthNetwork
import HearthTestSupport

@testable import HearthDocuments
@testable import HearthEngine
@testable import HearthFirestoreServer

/// A line of the change feed, read again.
struct ReadLine {
    let token: String
    let type: String
    let document: String
    let time: String
    /// The value of the field `n` before and after.
    let before: Int?
    let after: Int?
    let hasBefore: Bool
    let hasAfter: Bool
    let mask: [String]?
    let isLast: Bool
    let heartbeat: String?
    let errorCode: Int?

    init(_ line: some StringProtocol) throws {
        let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any] ?? [:]
        func number(_ name: String) -> Int? {
            let fields = (object[name] as? [String: Any])?["fields"] as? [String: Any]
            return ((fields?["n"] as? [String: Any])?["integerValue"] as? String).flatMap { Int($0) }
        }
        token = object["token"] as? String ?? ""
        type = object["type"] as? String ?? ""
        document = (object["document"] as? String ?? "").components(separatedBy: "/documents/").last ?? ""
        time = object["time"] as? String ?? ""
        before = number("before")
        after = number("after")
        hasBefore = object["before"] != nil
        hasAfter = object["after"] != nil
        mask = object["mask"] as? [String]
        isLast = object["last"] as? Bool ?? false
        heartbeat = object["heartbeat"] as? String
        errorCode = (object["error"] as? [String: Any])?["code"] as? Int
    }

    static func all(_ bytes: [UInt8]) throws -> [ReadLine] {
        try String(decoding: bytes, as: UTF8.self).split(separator: "\n").map { try ReadLine($0) }
    }
}

extension ChangeParameters {
    init(_ query: String) throws(Status) { try self.init(query: query, lastEventID: nil, accept: nil) }
}

/// A database whose documents have one number each, and what they must be.
final class ChangeSite {
    let clock = StoppedClock()
    let database: Database
    /// The state after each commit, by version.
    private(set) var history: [Int64: [String: Int]] = [:]
    private(set) var state: [String: Int] = [:]
    private(set) var version: Int64 = 0
    private var generator: SeededGenerator

    static let paths = (0..<12).map { "a/d\($0)" } + ["a/d1/b/x", "a/d1/b/y", "a-/q", "z/__id7__", "z/k"]

    init(seed: UInt64 = 1) throws {
        generator = SeededGenerator(seed: seed)
        database = try Database(
            name: DatabaseName(project: "p", database: "(default)"), store: MemoryStore(), clock: clock)
        history[0] = [:]
    }

    func name(_ path: String) -> ResourceName {
        ResourceName(database: database.name, path: ResourcePath(path.split(separator: "/").map(String.init)))
    }

    func commit(_ changes: [(path: String, n: Int?)]) async throws {
        clock.advance(seconds: 0.001)
        let writes = changes.map { path, n in
            let operation: Write.Operation =
                n.map {
                    .update(fields: MapValue([MapValue.Field(name: "n", value: .integer(Int64($0)))]), mask: nil)
                } ?? .delete
            return Write(document: name(path), operation: operation, transforms: [], precondition: .none)
        }
        try await database.commit(writes)
        for (path, n) in changes { state[path] = n }
        version = database.newestVersion
        history[version] = state
    }

    /// A random commit, in which a document may occur twice.
    func commitSome() async throws {
        let count = generator.number(1..<6)
        try await commit(
            (0..<count).map { _ in
                (generator.pick(Self.paths), generator.chance(30) ? nil : generator.below(1_000_000))
            })
    }

    /// Reads until there is nothing more, or the reader has failed.
    func read(_ query: String, stepBytes: Int = ChangeReading.stepBytes) throws -> (lines: [ReadLine], failure: Status?)
    {
        let reading = ChangeReading(try ChangeParameters(query), of: database, stepBytes: stepBytes)
        var lines: [ReadLine] = []
        while true {
            let step = reading.readOn()
            lines += try ReadLine.all(step.bytes)
            if let failure = step.failure { return (lines, failure) }
            if step.isOver || step.isAtEnd { return (lines, nil) }
        }
    }

    /// The version of a line's commit.
    static func version(_ line: ReadLine) throws -> Int64 { try ChangeToken(line.token).version }
}
