import HearthConcurrency
import HearthModel
import HearthDocuments
import HearthTestSupport
import HearthWire
import Synchronization
import Testing

@testable import HearthFirestoreServer

/// Compares a cached window with an array that is sorted again for each comparison.
@Suite("A cached window")
struct CachedWindowTests {
    private struct Row {
        var order: UInt8
        var version: Int64
    }

    private static func key(_ id: Int) -> [UInt8] { Array("d\(id)".utf8) }
    private static func position(_ id: Int, _ order: UInt8) -> [UInt8] { [order] + key(id) }

    private static func query(limit: Int?, offset: Int) -> Query {
        Query(
            parent: ResourceName(database: StreamBench.name, path: ResourcePath([])), scope: .collection("c"),
            offset: offset, limit: limit)
    }

    /// All matching documents, in order.
    private static func sorted(_ rows: [Int: Row]) -> [(key: [UInt8], version: Int64, position: [UInt8])] {
        rows.map { (key($0.key), $0.value.version, position($0.key, $0.value.order)) }
            .sorted { UTF8Order.compare($0.position, $1.position) < 0 }
    }

    private static func window(_ rows: [Int: Row], _ ranks: Range<Int>) -> [[UInt8]: Int64] {
        let sorted = sorted(rows)
        let inside = min(ranks.lowerBound, sorted.count)..<min(ranks.upperBound, sorted.count)
        return Dictionary(uniqueKeysWithValues: sorted[inside].map { ($0.key, $0.version) })
    }

    private static func found(_ rows: [Int: Row], limit: Int?, offset: Int) throws -> CachedWindow {
        var window = try #require(CachedWindow(of: query(limit: limit, offset: offset)))
        let sorted = sorted(rows)
        let wanted = window.wantedCount ?? .max
        for row in sorted.prefix(wanted) { window.append(row.key, at: row.position, row.version) }
        window.close(isComplete: sorted.count < wanted)
        return window
    }

    @Test(
        "equals the sorted results after any change, or reports that it is exhausted",
        arguments: 1...40 as ClosedRange<UInt64>)
    func property(seed: UInt64) throws {
        var random = SeededGenerator(seed: seed)
        // Few order values, so that many are equal.
        let ids = [12, 60, 1000][random.below(3)]
        let limit = [nil, 1, 2, 5, 40, 400][random.below(6)]
        let offset = [0, 0, 1, 3, 100][random.below(5)]
        var rows: [Int: Row] = [:]
        var version: Int64 = 0
        for id in 0..<ids where random.below(2) == 0 {
            version += 1
            rows[id] = Row(order: UInt8(random.below(8)), version: version)
        }
        var window = try Self.found(rows, limit: limit, offset: offset)
        var before = Self.window(rows, window.ranks)
        var refills = 0
        for step in 0..<(ids == 1000 ? 200 : 800) {
            version += 1
            let id = random.below(ids)
            // First more documents enter than leave, then more leave than enter.
            if random.below(4) < (step / 80 % 2 == 0 ? 3 : 1) {
                rows[id] = Row(
                    order: random.below(3) == 0 ? rows[id]?.order ?? 1 : UInt8(random.below(8)), version: version)
            } else {
                rows[id] = nil
            }
            let effect = window.change(Self.key(id), to: rows[id].map { Self.position(id, $0.order) }, version)
            let after = Self.window(rows, window.ranks)
            guard case .seen(let keys) = effect else {
                refills += 1
                window = try Self.found(rows, limit: limit, offset: offset)
                before = after
                continue
            }
            let seen = Set(keys)
            for key in Set(before.keys).union(after.keys) where before[key] != after[key] {
                #expect(seen.contains(key), "seed \(seed), step \(step)")
            }
            // At most the document and one at each end.
            #expect(keys.count <= 6)
            for key in seen { #expect(window.updateVersion(of: key) == after[key], "seed \(seed), step \(step)") }
            if step % 50 == 0 {
                var found: [(key: [UInt8], version: Int64)] = []
                try window.forEach { key, version in found.append((key, version)) }
                #expect(found.map(\.key) == found.map(\.key).filter { after[$0] != nil })
                #expect(Dictionary(uniqueKeysWithValues: found) == after, "seed \(seed), step \(step)")
                let sizes = Self.sorted(rows).prefix(window.count).reduce(0) {
                    $0 + CachedWindow.size($1.key, $1.position)
                }
                #expect(window.sizeBytes == sizes, "seed \(seed), step \(step)")
            }
            before = after
        }
        // A window that is found again has results behind it.
        #expect(refills < 300)
    }

    @Test("costs the same for a change, whether it has n, 10n or 100n results")
    func growth() throws {
        var counts: [Int] = []
        for limit in [100, 1000, 10_000] {
            var random = SeededGenerator(seed: UInt64(limit))
            var rows: [Int: Row] = [:]
            for id in 0..<3 * limit { rows[id] = Row(order: UInt8(random.below(250)), version: 1) }
            var window = try Self.found(rows, limit: limit, offset: 0)
            let before = window.steps
            for _ in 0..<200 {
                let id = random.below(3 * limit)
                _ = window.change(Self.key(id), to: Self.position(id, UInt8(random.below(250))), 2)
            }
            counts.append(window.steps - before)
        }
        // A part of a chunk of 512 elements, a few times.
        #expect(counts.allSatisfy { $0 < 200 * 4 * 512 })
        #expect(counts[2] < 3 * counts[1])
    }

    @Test("is not cached when it needs too much memory", arguments: [(1 << 20, 0), (10, 5000), (Int.max, 1)])
    func bounds(limit: Int, offset: Int) {
        #expect(CachedWindow(of: Self.query(limit: limit, offset: offset)) == nil)
    }
}

@Suite("Changes in a window")
struct WindowChangesTests {
    @Test("are known back to some version, each document once", arguments: 1...20 as ClosedRange<UInt64>)
    func property(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        var seen = WindowChanges(from: 100)
        var all: [(key: [UInt8], version: Int64)] = []
        var version: Int64 = 100
        let length = [4, 3000][random.below(2)]
        for _ in 0..<3000 {
            version += Int64(random.below(3))
            let keys = (0..<random.below(5)).map { _ in
                Array("\(random.below(40))".utf8) + [UInt8](repeating: 1, count: length)
            }
            seen.note(keys, version)
            for key in keys { all.append((key, version)) }
            #expect(seen.sizeBytes <= (64 << 10) + 64 * 512)
            guard random.below(30) == 0 else { continue }
            let since = version - Int64(random.below(400))
            guard let found = seen.keys(after: since) else {
                #expect(since < seen.from)
                continue
            }
            #expect(Set(found) == Set(all.filter { $0.version > since }.map(\.key)), "seed \(seed)")
            #expect(Set(found).count == found.count)
        }
        // The latest changes are always known.
        #expect(seen.keys(after: version) != nil)
    }
}
