import HearthModel
import HearthDocuments
import HearthTestSupport
import HearthTree
import Testing

@testable import HearthTreeStorage

@Suite struct CodeTests {
    @Test func keysKeepTheirOrderAndTheirSpelling() throws {
        let seed = TestRun.seed()
        var trees = RandomTrees(seed)
        for _ in 0..<20_000 {
            let (left, right) = (trees.key(), trees.key())
            var (leftBytes, rightBytes): ([UInt8], [UInt8]) = ([], [])
            PathCode.append(left, to: &leftBytes)
            PathCode.append(right, to: &rightBytes)
            let order = UTF8Order.compare(leftBytes, rightBytes).signum()
            #expect(order == TreeKey.compare(left, right).signum(), "seed \(seed), \(left) and \(right)")
            #expect(left == right || !rightBytes.starts(with: leftBytes), "seed \(seed), \(left) and \(right)")
            #expect(try PathCode.end(of: leftBytes + [1, 2], from: 0) == leftBytes.count)
            #expect(PathCode.key(leftBytes[...]) == left, "seed \(seed)")
        }
    }

    @Test(arguments: ["a\u{0}", "a\u{1F}b", "\u{0}", "a", "a ", "ab\u{FFFF}", "-0", "00", "7", "2147483648"])
    func boundsAreBetweenKeysAndTheirSubtrees(string: String) {
        let seed = TestRun.seed()
        var trees = RandomTrees(seed)
        let bound = TreeKey(string)
        let bytes = PathCode.bound([1], bound)
        for _ in 0..<2000 {
            let key = trees.key()
            if key == bound { continue }
            let below = PathCode.location(TreePath(keys: [key, trees.key()]))
            let order = UTF8Order.compare(below, bytes).signum()
            #expect(order == TreeKey.compare(key, bound).signum(), "seed \(seed), \(key)")
        }
    }

    @Test func recordsKeepValuesAndPriorities() throws {
        let seed = TestRun.seed()
        var trees = RandomTrees(seed)
        for _ in 0..<5000 {
            let priority = trees.priority()
            let value = trees.random.chance(90) ? trees.scalar() : nil
            let record = try TreeRecord(stored: TreeRecord(value, priority: priority).bytes)
            let string = Array((value?.string ?? "").utf8)
            #expect(try record.value { string } == value, "seed \(seed)")
            #expect(try record.priority == priority, "seed \(seed)")
            #expect(record.isInner == (value == nil))
            if let string = value?.string { #expect(try record.valueSizeBytes == string.utf8.count) }
        }
    }

    @Test func damagedRecordsAreRefused() throws {
        let record = TreeRecord("value", priority: "priority").bytes
        for count in 0..<6 {
            #expect(throws: Status.self) {
                let cut = try TreeRecord(stored: Array(record[..<count]))
                _ = try cut.priority
            }
        }
        #expect(throws: Status.self) { try TreeRecord(stored: [0x07]) }
        for number in [Double.nan, .infinity, -.infinity] {
            // Nobody stores them, and JSON has no form for them.
            let record = try TreeRecord(stored: TreeRecord(.double(number), priority: .double(number)).bytes)
            #expect(throws: Status.self) { try record.value { () throws(Status) in [] } }
            #expect(throws: Status.self) { try record.priority }
            var code: [UInt8] = []
            IndexCode.append(.double(number), to: &code)
            #expect(throws: Status.self) { try IndexCode.value(code[...]) }
        }
        #expect(throws: Status.self) { try PathCode.end(of: [2, 65, 66], from: 0) }
        #expect(throws: Status.self) { try PathCode.end(of: [1, 0, 0, 0, 0], from: 0) }
        #expect(throws: Status.self) { try PathCode.end(of: [3], from: 0) }
        #expect(throws: Status.self) { try IndexCode.end(of: [0x19, 65], from: 0) }
        #expect(throws: Status.self) { try IndexCode.end(of: [0x99], from: 0) }
    }

    @Test func indexedValuesKeepTheirOrder() throws {
        let seed = TestRun.seed()
        var trees = RandomTrees(seed)
        func code(_ value: TreeIndexValue) -> [UInt8] {
            var bytes: [UInt8] = []
            value.append(to: &bytes)
            return bytes
        }
        func any() -> TreeIndexValue {
            switch trees.random.below(12) {
            case 0: .null
            case 1: .inner
            default: .scalar(trees.scalar())
            }
        }
        for _ in 0..<20_000 {
            let (left, right) = (any(), any())
            let (leftBytes, rightBytes) = (code(left), code(right))
            let order = UTF8Order.compare(leftBytes, rightBytes).signum()
            let (end, isCut) = try IndexCode.end(of: leftBytes, from: 0)
            #expect(end == leftBytes.count)
            if leftBytes == rightBytes, isCut { continue }
            #expect(order == TreeIndexValue.compare(left, right).signum(), "seed \(seed), \(left) and \(right)")
            if !isCut { #expect(TreeIndexValue.compare(try IndexCode.value(leftBytes[...]), left) == 0) }
        }
    }
}
