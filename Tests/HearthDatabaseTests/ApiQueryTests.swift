import HearthModel
import HearthTree
import Testing

@testable import HearthDatabase

private typealias ServerValue = HearthDatabase.ServerValue

/// The meaning of queries, and calls that cannot be combined.
struct ApiQueryTests {
    private let plain = QuerySpec()

    private func bound(_ value: Scalar?, _ key: TreeQuery.BoundKey, _ isInclusive: Bool = true) -> TreeQuery.Bound {
        TreeQuery.Bound(value: value, key: key, isInclusive: isInclusive)
    }

    @Test func bounds() throws {
        let byAge = try plain.ordered(byChild: "age")
        #expect(byAge.query.index == .child("age"))
        #expect(byAge.query.isUnfiltered)
        #expect(try byAge.bounded(.startingAt, 3, childKey: nil).query.start == bound(3, .min))
        #expect(try byAge.bounded(.startingAt, 3, childKey: "k").query.start == bound(3, .key("k")))
        #expect(try byAge.bounded(.startingAfter, 3, childKey: nil).query.start == bound(3, .max, false))
        #expect(try byAge.bounded(.startingAfter, 3, childKey: "k").query.start == bound(3, .key("k"), false))
        #expect(try byAge.bounded(.endingAt, true, childKey: nil).query.end == bound(true, .max))
        #expect(try byAge.bounded(.endingBefore, "x", childKey: nil).query.end == bound("x", .min, false))
        #expect(try byAge.bounded(.endingBefore, "x", childKey: "k").query.end == bound("x", .key("k"), false))
        let equal = try byAge.bounded(.equal, nil, childKey: nil).query
        #expect(equal.start == bound(nil, .min) && equal.end == bound(nil, .max))
        let one = try byAge.bounded(.equal, 1.5, childKey: "k").query
        #expect(one.start == bound(1.5, .key("k")) && one.end == bound(1.5, .key("k")))
    }

    @Test func keys() throws {
        let byKey = try plain.ordered(by: .key, "queryOrderedByKey()")
        #expect(try byKey.bounded(.startingAt, "a", childKey: nil).query.start == bound(nil, .key("a")))
        #expect(try byKey.bounded(.startingAfter, "a", childKey: nil).query.start == bound(nil, .key("a"), false))
        #expect(try byKey.bounded(.endingBefore, "b", childKey: nil).query.end == bound(nil, .key("b"), false))
        // No stored key is valid here; as a bound it is.
        #expect(try byKey.bounded(.endingAt, "a.\u{f8ff}", childKey: nil).query.end == bound(nil, .key("a.\u{f8ff}")))
        let early = try plain.bounded(.startingAt, "a", childKey: nil).ordered(by: .key, "queryOrderedByKey()")
        #expect(early.query.start == bound(nil, .key("a")))
    }

    @Test func limits() throws {
        let last = try plain.limited(.last, to: 3).query
        #expect(last.limit == 3 && last.isLimitedToLast && !last.isUnfiltered)
        let first = try plain.limited(.first, to: 1).query
        #expect(first.limit == 1 && !first.isLimitedToLast)
    }

    @Test func refusals() throws {
        let byAge = try plain.ordered(byChild: "age")
        let byKey = try plain.ordered(by: .key, "")
        let byPriority = try plain.ordered(by: .priority, "")
        let cases: [(String, () throws -> QuerySpec)] = [
            ("a limit already", { try plain.limited(.first, to: 1).limited(.last, to: 1) }),
            ("from 1 to", { try plain.limited(.first, to: 0) }),
            ("from 1 to", { try plain.limited(.last, to: 1 << 31) }),
            ("an order already", { try byAge.ordered(by: .key, "queryOrderedByKey()") }),
            ("an order already", { try byPriority.ordered(byChild: "x") }),
            ("start is set", { try plain.bounded(.startingAt, 1, childKey: nil).bounded(.equal, 1, childKey: nil) }),
            ("end is set", { try plain.bounded(.endingAt, 1, childKey: nil).bounded(.endingBefore, 1, childKey: nil) }),
            ("start is set", { try plain.bounded(.equal, 1, childKey: nil).bounded(.startingAfter, 1, childKey: nil) }),
            ("needs a string", { try byKey.bounded(.startingAt, 1, childKey: nil) }),
            ("needs a string", { try byKey.bounded(.equal, nil, childKey: nil) }),
            ("no child key", { try byKey.bounded(.startingAt, "a", childKey: "k") }),
            ("by priority", { try byPriority.bounded(.startingAt, true, childKey: nil) }),
            ("nil, a string, a number", { try byAge.bounded(.startingAt, ["a": 1], childKey: nil) }),
            ("nil, a string, a number", { try byAge.bounded(.startingAt, ServerValue.timestamp(), childKey: nil) }),
            ("can't be stored", { try byAge.bounded(.startingAt, Double.nan, childKey: nil) }),
            ("A key has", { try byAge.bounded(.startingAt, 1, childKey: "a/b") }),
            ("isn't empty", { try plain.ordered(byChild: "/") }),
            ("A key has", { try plain.ordered(byChild: "a.b") }),
            ("queryOrderedByKey", { try plain.ordered(byChild: "$key") }),
            ("queryOrderedByKey", { try plain.ordered(byChild: ".key") }),
            ("queryOrderedByPriority", { try plain.ordered(byChild: ".priority") }),
            ("queryOrderedByValue", { try plain.ordered(byChild: "$value") }),
            (
                "needs bounds that are strings",
                { try plain.bounded(.endingAt, 1, childKey: nil).ordered(by: .key, "x") }
            ),
        ]
        for (string, body) in cases {
            do {
                Issue.record("\(string): \(try body())")
            } catch let status as Status {
                #expect(status.message.contains(string), "\(status.message)")
            }
        }
    }
}
