import Foundation
import HearthModel
import Testing

@testable import HearthSync

/// A folder that is removed when the test ends.
final class CacheFolder {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.appending(path: "hearth-cache-\(UUID().uuidString)").path()
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit { try? FileManager.default.removeItem(atPath: path) }

    func files(_ appName: String = "app") -> CacheFiles {
        CacheFiles(folder: path, appName: appName, database: DatabaseName(project: "demo"))
    }

    func open(sizeBytes: Int64 = CollectionParameters.never) throws -> SQLitePersistence {
        try SQLitePersistence(files: files(), sizeBytes: sizeBytes)
    }
}

/// The caches that must behave alike.
enum CacheKind: CaseIterable, Sendable {
    case memory, sqlite

    /// - Parameter thresholdBytes: the threshold of the collector; below one byte it always runs.
    func with(thresholdBytes: Int64 = 0, _ body: (any Persistence) throws -> Void) throws {
        switch self {
        case .memory:
            try body(MemoryPersistence(.lru(CollectionParameters(thresholdBytes: thresholdBytes))))
        case .sqlite:
            let folder = try CacheFolder()
            let cache = try folder.open(sizeBytes: thresholdBytes)
            try body(cache)
            cache.shutDown()
        }
    }
}

/// A generator with a seed (SplitMix64).
struct CacheRandom: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var z = state
        z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
        z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
        return z ^ (z >> 31)
    }

    mutating func number(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &self) }
    mutating func isTrue(_ percent: Int) -> Bool { number(100) < percent }
    mutating func pick<Element>(_ elements: [Element]) -> Element { elements[number(elements.count)] }
}

extension ResourcePath {
    init(_ string: String) { self.init(string: string) }
}

extension MapValue {
    init(_ fields: KeyValuePairs<String, Value>) { self.init(fields.map { Field(name: $0.key, value: $0.value) }) }
}

extension ClientDocument {
    /// A server document with a version in seconds.
    static func found(_ key: String, _ version: Int64 = 1, _ fields: KeyValuePairs<String, Value> = [:]) -> Self {
        ClientDocument(
            key: ResourcePath(key), kind: .found, version: .seconds(version), createTime: .seconds(1),
            fields: MapValue(fields))
    }
}

extension Timestamp {
    static func seconds(_ seconds: Int64) -> Timestamp { Timestamp(microseconds: seconds * 1_000_000) }
}

extension Mutation {
    static func set(_ key: String, _ fields: KeyValuePairs<String, Value> = [:]) -> Mutation {
        Mutation(key: ResourcePath(key), kind: .set(MapValue(fields)))
    }
}

extension ClientQuery {
    static func collection(_ path: String, _ filters: [Filter] = [], orders: [(String, Bool)] = [], limit: Int? = nil)
        -> ClientQuery
    {
        ClientQuery(
            path: ResourcePath(path), filters: filters,
            orders: orders.map { Query.Order(field: FieldPath($0.0), descending: $0.1) }, limit: limit)
    }
}

extension FieldIndex {
    init(_ group: String, _ segments: (String, Segment.Kind)...) {
        self.init(
            collectionGroup: group, segments: segments.map { Segment(path: FieldPath($0.0), kind: $0.1) })
    }
}

func filter(_ field: String, _ op: Filter.Operator, _ value: Value) -> Filter { .field(FieldPath(field), op, value) }

/// The code that a call throws; nil when it does not throw.
func code(_ body: () throws -> Void) -> Status.Code? {
    do {
        try body()
        return nil
    } catch {
        return (error as? Status)?.code ?? .unknown
    }
}

func status(_ body: () throws -> Void) -> Status? {
    do {
        try body()
        return nil
    } catch {
        return error as? Status
    }
}
