import HearthToolSupport
import Glibc
import HearthModel

/// Storage alone: the rows of the commit workloads, written in durable transactions of as many commits as are in
/// flight. Without network, queue and checks: the upper bound for Hearth.
final class StoragePeer<Engine: StorageEngine>: BenchSession {
    private let settings: BenchSettings
    private let housekeeping: BenchHousekeeping
    private var engine: Engine?
    private var rows: CommitRows

    init(_ settings: BenchSettings, _ housekeeping: BenchHousekeeping) {
        self.settings = settings
        self.housekeeping = housekeeping
        rows = CommitRows(documents: settings.documents, seed: settings.seed)
    }

    func stop() { engine?.close() }

    func run(_ workload: Workload) throws(ToolFailure) -> [Figure] {
        guard case .commit(let inFlight, let fields, _) = workload.kind else { return [] }
        do throws(Status) {
            let engine = try filled()
            let before = ProcessTimes.own
            let watch = Stopwatch()
            var count = 0
            while watch.seconds < settings.seconds {
                try engine.transaction { writer throws(Status) in
                    for _ in 0..<inFlight { try rows.change(fields, writer) }
                }
                count += inFlight
            }
            let seconds = watch.seconds
            var result = LoadResult()
            result.all = count
            return [
                Figure(
                    workload: workload.name, metric: "rate", unit: "/s", value: Double(count) / seconds,
                    direction: .higherIsBetter),
                Figure(
                    workload: workload.name, metric: "p50", unit: "ms",
                    value: seconds * 1000 * Double(inFlight) / Double(count), direction: .lowerIsBetter),
            ] + result.costs(workload.name, before, ProcessTimes.own)
        } catch {
            throw ToolFailure(.failed, error.message)
        }
    }

    private func filled() throws(Status) -> Engine {
        if let engine { return engine }
        let engine = try Engine(folder: housekeeping.folder("storage"))
        self.engine = engine
        for start in stride(from: 0, to: settings.documents, by: 500) {
            try engine.transaction { writer throws(Status) in
                for number in start..<min(settings.documents, start + 500) { try rows.insert(number, writer) }
            }
        }
        return engine
    }
}

/// The rows that Hearth writes for a document: its own, one for each indexed field, and one of the feed.
private struct CommitRows {
    private var values: [[UInt64]]
    private var random: SeededRandom
    private var version: UInt64 = 1

    private static let fields = 5
    private static let document = [UInt8](repeating: 0x61, count: 500)

    init(documents: Int, seed: UInt64) {
        var random = SeededRandom(seed: seed)
        values = (0..<documents).map { _ in (0..<Self.fields).map { _ in random.next() } }
        self.random = random
    }

    func insert(_ number: Int, _ writer: any RowWriter) throws(Status) {
        try writer.put(.documents, Self.documentKey(number), Self.document)
        for (field, value) in values[number].enumerated() {
            try writer.put(.entries, Self.entryKey(field, value, number), [])
        }
    }

    /// One commit to a random document.
    mutating func change(_ fields: Workload.CommitFields, _ writer: any RowWriter) throws(Status) {
        let number = Int.random(in: 0..<values.count, using: &random)
        let changed = fields == .all ? Array(0..<Self.fields) : [Int.random(in: 0..<Self.fields, using: &random)]
        try writer.put(.documents, Self.documentKey(number), Self.document)
        for field in changed {
            try writer.delete(.entries, Self.entryKey(field, values[number][field], number))
            values[number][field] = random.next()
            try writer.put(.entries, Self.entryKey(field, values[number][field], number), [])
        }
        version += 1
        try writer.put(.feed, Self.bigEndian(version) + Self.documentKey(number), Self.document)
    }

    private static func bigEndian(_ number: UInt64) -> [UInt8] { withUnsafeBytes(of: number.bigEndian) { Array($0) } }

    private static func documentKey(_ number: Int) -> [UInt8] { Array("projects/bench/work/d\(number)".utf8) }

    private static func entryKey(_ field: Int, _ value: UInt64, _ number: Int) -> [UInt8] {
        Array("work/f\(field)/".utf8) + bigEndian(value) + documentKey(number)
    }
}
