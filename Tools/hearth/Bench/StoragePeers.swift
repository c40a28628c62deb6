import Glibc
import HearthModel
import HearthSQLite
import HearthStorage

/// SQLite alone: the rows of the commit workloads, written in durable transactions of as many commits as are in flight.
/// No network, no queue, no checks: the bound that Hearth's storage can come near to.
final class SQLitePeer: BenchSession {
    private let settings: BenchSettings
    private let housekeeping: BenchHousekeeping
    private var store: (any Store)?
    private var values: [[UInt64]] = []
    private var random: SeededRandom
    private var version: UInt64 = 1

    private static let fields = 5

    init(_ settings: BenchSettings, _ housekeeping: BenchHousekeeping) {
        self.settings = settings
        self.housekeeping = housekeeping
        random = SeededRandom(seed: settings.seed)
    }

    func stop() { store?.close() }

    func run(_ workload: Workload) throws(ToolFailure) -> [Figure] {
        guard case .commit(let inFlight, let fields) = workload.kind else { return [] }
        do throws(Status) {
            let store = try prepared()
            let watch = Stopwatch()
            var count = 0
            while watch.seconds < Double(settings.seconds) {
                try write(to: store, group: inFlight, fields)
                count += inFlight
            }
            let seconds = watch.seconds
            return [
                Figure(
                    workload: workload.name, metric: "rate", unit: "/s", value: Double(count) / seconds,
                    direction: .higherIsBetter),
                Figure(
                    workload: workload.name, metric: "p50", unit: "ms",
                    value: seconds * 1000 * Double(inFlight) / Double(count), direction: .lowerIsBetter),
            ]
        } catch {
            throw ToolFailure(.failed, error.message)
        }
    }

    private func prepared() throws(Status) -> any Store {
        if let store { return store }
        let store = try SQLiteStore(path: housekeeping.folder("sqlite") + "/data.sqlite")
        self.store = store
        values = (0..<settings.documents).map { _ in (0..<Self.fields).map { _ in random.next() } }
        for start in stride(from: 0, to: settings.documents, by: 500) {
            try store.write { transaction throws(Status) in
                for number in start..<min(settings.documents, start + 500) {
                    try transaction.put(.documents, Self.documentKey(number), Self.document)
                    for (field, value) in values[number].enumerated() {
                        try transaction.put(.entries, Self.entryKey(field, value, number), [])
                    }
                }
            }
        }
        return store
    }

    private func write(to store: any Store, group: Int, _ fields: Workload.CommitFields) throws(Status) {
        try store.write { transaction throws(Status) in
            for _ in 0..<group {
                let number = Int.random(in: 0..<settings.documents, using: &random)
                let changed =
                    fields == .all ? Array(0..<Self.fields) : [Int.random(in: 0..<Self.fields, using: &random)]
                try transaction.put(.documents, Self.documentKey(number), Self.document)
                for field in changed {
                    try transaction.delete(.entries, Self.entryKey(field, values[number][field], number))
                    values[number][field] = random.next()
                    try transaction.put(.entries, Self.entryKey(field, values[number][field], number), [])
                }
                version += 1
                try transaction.put(.feed, Self.bigEndian(version) + Self.documentKey(number), Self.document)
            }
        }
    }

    private static let document = [UInt8](repeating: 0x61, count: 500)

    private static func bigEndian(_ number: UInt64) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }

    private static func documentKey(_ number: Int) -> [UInt8] { Array("projects/bench/work/d\(number)".utf8) }

    private static func entryKey(_ field: Int, _ value: UInt64, _ number: Int) -> [UInt8] {
        Array("work/f\(field)/".utf8) + bigEndian(value) + documentKey(number)
    }
}

/// The bare disk: how long one small write takes until it is durable.
struct DiskPeer: BenchSession {
    private let settings: BenchSettings
    private let folder: String

    init(_ settings: BenchSettings, _ housekeeping: BenchHousekeeping) {
        self.settings = settings
        folder = housekeeping.folder("disk")
    }

    func stop() {}

    func run(_ workload: Workload) throws(ToolFailure) -> [Figure] {
        let path = folder + "/file"
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
        if descriptor < 0 { throw ToolFailure(.data, "Cannot write \(path): \(String(cString: strerror(errno))).") }
        defer {
            close(descriptor)
            unlink(path)
        }
        let bytes = [UInt8](repeating: 0x61, count: 4096)
        var microseconds: [UInt32] = []
        let watch = Stopwatch()
        while watch.seconds < Double(min(settings.seconds, 2)) {
            let one = Stopwatch()
            guard write(descriptor, bytes, bytes.count) == bytes.count, fdatasync(descriptor) == 0 else {
                throw ToolFailure(.data, "Cannot write \(path): \(String(cString: strerror(errno))).")
            }
            microseconds.append(UInt32(one.seconds * 1e6))
        }
        var result = LoadResult()
        result.count = microseconds.count
        result.seconds = watch.seconds
        result.latenciesMicroseconds = microseconds.sorted()
        return [
            Figure(
                workload: workload.name, metric: "rate", unit: "/s", value: result.rate, direction: .higherIsBetter),
            Figure(
                workload: workload.name, metric: "p50", unit: "ms", value: result.percentile(0.5) / 1000,
                direction: .lowerIsBetter),
        ]
    }
}
