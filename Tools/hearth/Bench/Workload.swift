/// A named load with a fixed shape, so that figures of different days can be compared.
struct Workload: Sendable, Equatable {
    enum Kind: Sendable {
        /// Durable commits of one document.
        case commit(inFlight: Int, fields: CommitFields)
        case get
        case query(QueryShape, isLarge: Bool)
        case count
        case bulk
        case startup
        case idleMemory
    }

    enum CommitFields: Sendable {
        case all
        case one
    }

    enum QueryShape: Sendable {
        case range
        case equality
    }

    let name: String
    let summary: String
    let kind: Kind

    static func == (lhs: Workload, rhs: Workload) -> Bool { lhs.name == rhs.name }

    static let all: [Workload] = [
        Workload(name: "startup", summary: "From the start of the process to the first answer.", kind: .startup),
        Workload(
            name: "idle-memory", summary: "Resident memory of a server that has nothing to do.", kind: .idleMemory),
        Workload(
            name: "commit-1", summary: "Commits of one document (500 B, five indexed fields change), one in flight.",
            kind: .commit(inFlight: 1, fields: .all)),
        Workload(
            name: "commit-32", summary: "The same, 32 in flight over four connections.",
            kind: .commit(inFlight: 32, fields: .all)),
        Workload(
            name: "commit-32-one", summary: "32 in flight, one indexed field of five changes.",
            kind: .commit(inFlight: 32, fields: .one)),
        Workload(name: "get", summary: "GetDocument, 8 connections with 16 streams each.", kind: .get),
        Workload(
            name: "query-range-small", summary: "Range on an indexed field, 100 of 1,000 documents.",
            kind: .query(.range, isLarge: false)),
        Workload(
            name: "query-equal-small", summary: "Equality on an indexed field, 100 of 1,000 documents.",
            kind: .query(.equality, isLarge: false)),
        Workload(
            name: "bulk",
            summary: "Load of the large collection by BatchWrite, 500 documents a request, four in flight.",
            kind: .bulk),
        Workload(
            name: "query-range-large", summary: "Range on an indexed field, 100 documents of the large collection.",
            kind: .query(.range, isLarge: true)),
        Workload(
            name: "query-equal-large", summary: "Equality on an indexed field, 100 documents of the large collection.",
            kind: .query(.equality, isLarge: true)),
        Workload(name: "count", summary: "count() over the large collection.", kind: .count),
    ]
}

/// One measured number.
struct Figure: Sendable {
    enum Direction: String, Sendable {
        case higherIsBetter
        case lowerIsBetter
    }

    var workload: String
    /// `rate`, `p50`, …
    var metric: String
    var unit: String
    var value: Double
    var direction: Direction
}
