import HearthModel

/// Counts the requests of clients, with their status and latency.
///
/// Each event loop has its own table; a reader adds them up.
package final class RequestMetrics: Sendable {
    /// The methods that have separate counters.
    package enum Method: Int, Sendable, CaseIterable {
        case getDocument, listDocuments, createDocument, updateDocument, deleteDocument, batchGetDocuments
        case beginTransaction, commit, rollback, runQuery, runAggregationQuery, executePipeline, partitionQuery
        case listCollectionIds, batchWrite, write, listen
        /// The admin services, all methods together.
        case admin
        /// Fetching a bundle.
        case bundle
        /// A change feed.
        case changes
        /// The Realtime Database over HTTP: reading, writing, and rules and settings.
        case realtimeRead, realtimeWrite, realtimeAdmin
        case other

        /// As in gRPC: `GetDocument`.
        package var name: String { Self.names[rawValue] }

        private static let names = allCases.map { method in
            let string = String(describing: method)
            return string.prefix(1).uppercased() + string.dropFirst()
        }

        /// - Parameter path: of a gRPC call.
        package init(path: String) {
            guard path.hasPrefix("/google.firestore.v1.Firestore/") else {
                self = path.hasPrefix("/google.firestore.admin.") ? .admin : .other
                return
            }
            let name = path.split(separator: "/").last.map(String.init) ?? ""
            self = Self.names.firstIndex(of: name).flatMap(Self.init) ?? .other
        }
    }

    package enum Transport: Int, Sendable, CaseIterable {
        case grpc
        case rest
        case webChannel

        var name: String {
            switch self {
            case .grpc: "grpc"
            case .rest: "rest"
            case .webChannel: "webchannel"
            }
        }
    }

    /// Upper bounds of the latency buckets in microseconds; the last bucket has no bound.
    static let boundsMicroseconds = [
        50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 2_500_000,
        10_000_000, 60_000_000,
    ]

    private static let codeCount = Status.Code.allCases.count
    private static let bucketCount = boundsMicroseconds.count + 1
    /// Counters of one method: codes by transport, buckets, and the sum of microseconds.
    private static let stride = Transport.allCases.count * codeCount + bucketCount + 1

    private let tables: [CounterTable]

    /// - Parameter loopCount: the number of recording threads.
    package init(loopCount: Int) {
        tables = (0..<max(1, loopCount)).map { _ in CounterTable(count: Method.allCases.count * Self.stride) }
    }

    /// To be called on the loop with the given index.
    package func record(
        _ method: Method, _ transport: Transport, code: Status.Code, nanoseconds: UInt64, loopIndex: Int
    ) {
        let table = tables[loopIndex % tables.count]
        let base = method.rawValue * Self.stride
        table.add(1, at: base + transport.rawValue * Self.codeCount + code.rawValue)
        let microseconds = Int(clamping: nanoseconds / 1000)
        let buckets = base + Transport.allCases.count * Self.codeCount
        // Most requests are fast, so the search usually ends at the first bounds.
        let bucket = Self.boundsMicroseconds.firstIndex { microseconds <= $0 } ?? Self.boundsMicroseconds.count
        table.add(1, at: buckets + bucket)
        table.add(microseconds, at: buckets + Self.bucketCount)
    }

    private func sum(_ index: Int) -> Int { tables.reduce(0) { $0 &+ $1[index] } }

    package func count(_ method: Method, _ transport: Transport, _ code: Status.Code) -> Int {
        sum(method.rawValue * Self.stride + transport.rawValue * Self.codeCount + code.rawValue)
    }

    // MARK: Output

    func write(to string: inout MetricsWriter) {
        string.family("hearth_requests_total", .counter, "Requests that have ended, by method, transport and status.")
        for method in Method.allCases {
            for transport in Transport.allCases {
                for code in Status.Code.allCases {
                    let number = count(method, transport, code)
                    if number == 0 { continue }
                    string.sample(
                        "hearth_requests_total",
                        [("method", method.name), ("transport", transport.name), ("code", code.name)], number)
                }
            }
        }
        let name = "hearth_request_duration_seconds"
        string.family(name, .histogram, "Time from a request's arrival to the end of its answer.")
        for method in Method.allCases {
            let base = method.rawValue * Self.stride + Transport.allCases.count * Self.codeCount
            let counts = (0..<Self.bucketCount).map { sum(base + $0) }
            if counts.allSatisfy({ $0 == 0 }) { continue }
            string.histogram(
                name, [("method", method.name)], bounds: Self.boundsMicroseconds.map { Double($0) / 1e6 }, counts,
                sum: Double(sum(base + Self.bucketCount)) / 1e6)
        }
    }
}
