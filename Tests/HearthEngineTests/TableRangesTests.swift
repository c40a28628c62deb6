import HearthModel
import HearthTestStores
import HearthTestSupport
import Testing

@testable import HearthEngine

@Suite struct TableRangesTests {
    private static let keysMax = 40

    private func add(_ table: Table, _ lower: Int, _ upper: Int?) {
        var (editor, roots) = table.begin()
        key(lower).withKey { lower in
            upper.map { key($0) }.withKey { TableRanges.add(&roots[0], lower, $0, editor) }
        }
        table.commit(roots)
    }

    private func ranges(_ table: Table) -> [KeyRange] {
        var found: [KeyRange] = []
        var walk = TableWalk(table.present.roots[0])
        key(0).withKey { walk.moveUp(to: $0) }
        while let entry = walk.entry {
            let range = TableRange(entry)
            found.append(KeyRange(lower: range.lower.bytes, upper: range.upper?.bytes))
            walk.next()
        }
        return found
    }

    /// The ranges that cover a set of numbers; the greatest number means all that follow.
    private func expected(_ covered: Set<Int>) -> [KeyRange] {
        var found: [KeyRange] = []
        var start: Int?
        for number in 0...Self.keysMax + 1 {
            if covered.contains(number) {
                start = start ?? number
            } else if let lower = start {
                found.append(KeyRange(lower: key(lower), upper: number > Self.keysMax ? nil : key(number)))
                start = nil
            }
        }
        return found
    }

    @Test(arguments: TestRun.fixedSeedsAndNewOne)
    func rangesAreMerged(seed: UInt64) throws {
        print("seed \(seed); HEARTH_TEST_SEED=\(seed) repeats it")
        var random = SeededGenerator(seed: seed)
        for _ in 0..<100 {
            let table = Table(trees: 1)
            var covered: Set<Int> = []
            for _ in 0..<12 {
                let lower = random.below(Self.keysMax)
                let isOpen = random.isOne(in: 30)
                let upper = isOpen ? Self.keysMax + 1 : min(Self.keysMax, lower + 1 + random.below(8))
                add(table, lower, isOpen ? nil : upper)
                covered.formUnion(lower..<upper)
                #expect(ranges(table) == expected(covered))
                try expectReads(TableRanges(table.present.roots[0]), covered, &random)
            }
        }
    }

    private func expectReads(_ ranges: TableRanges, _ covered: Set<Int>, _ random: inout SeededGenerator) throws {
        var walk = TableRangeWalk(ranges.root)
        for _ in 0..<10 {
            let number = random.below(Self.keysMax + 1)
            #expect(key(number).withKey { ranges.range(with: $0) != nil } == covered.contains(number))
            #expect(key(number).withKey { walk.range(with: $0) != nil } == covered.contains(number))
            let upper = number + 1 + random.below(10)
            let numbers = number..<min(upper, Self.keysMax + 1)
            let range = KeyRange(lower: key(number), upper: upper > Self.keysMax ? nil : key(upper))
            #expect(ranges.meets(range) == !covered.isDisjoint(with: numbers))
            var parts: [KeyRange] = []
            try ranges.forEachPart(of: range) { part, isCovered throws(Status) in
                for number in numbers where part.contains(key(number)) {
                    #expect(covered.contains(number) == isCovered)
                }
                parts.append(part)
                return true
            }
            #expect(parts.first?.lower == range.lower && parts.last?.upper == range.upper)
            #expect(zip(parts, parts.dropFirst()).allSatisfy { $0.upper == $1.lower })
            #expect(parts.allSatisfy { !$0.isEmpty })
        }
    }
}
