import Foundation
import HearthCache
import HearthModel
import HearthTestSupport
import Testing

@testable import HearthSync

extension TemporaryFolder {
    func files(_ appName: String = "app") -> CacheFiles {
        CacheFiles(folder: path, appName: appName, database: DatabaseName(project: "demo"))
    }

    func open(sizeBytes: Int64 = CollectionParameters.never) throws -> SQLitePersistence {
        try SQLitePersistence(files: files(), sizeBytes: sizeBytes)
    }
}

extension SQLitePersistence {
    /// A warning is an issue of the test.
    convenience init(files: CacheFiles, sizeBytes: Int64, schema: CacheSchema = .current) throws(Status) {
        try self.init(files: files, sizeBytes: sizeBytes, schema: schema) { Issue.record("\($0)") }
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
            let folder = TemporaryFolder()
            let cache = try folder.open(sizeBytes: thresholdBytes)
            try body(cache)
            cache.shutDown()
        }
    }
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
