import HearthModel
import HearthTestSupport
import HearthTree
import Testing

/// The expected answer of a query, computed in a simple way: every child is visited, and orders are arrays of numbers.
private enum QueryModel {
    static func window(_ query: TreeQuery, _ node: Node) -> [TreeKey] {
        var children = node.children.map { (key: $0.key, position: position($0.key, $0.node, query.index)) }
        children.sort { isBefore($0.position, $1.position) }
        children.removeAll { child in
            if let start = query.start, !isBehind(child, start, query, -1) { return true }
            if let end = query.end, !isBehind(child, end, query, 1) { return true }
            return false
        }
        if let limit = query.limit {
            children = query.isLimitedToLast ? children.suffix(limit) : Array(children.prefix(limit))
        }
        return children.map(\.key)
    }

    private static func isBehind(
        _ child: (key: TreeKey, position: [[Double]]), _ bound: TreeQuery.Bound, _ query: TreeQuery, _ side: Int
    ) -> Bool {
        var edge = [query.index == .key ? [] : rank(bound.value)]
        switch bound.key {
        case .min: edge.append([-1])
        case .max: edge.append([9])
        case .key(let key): edge.append(rank(key))
        }
        if edge == child.position { return bound.isInclusive }
        return side < 0 ? isBefore(edge, child.position) : isBefore(child.position, edge)
    }

    private static func isBefore(_ lhs: [[Double]], _ rhs: [[Double]]) -> Bool {
        for (left, right) in zip(lhs, rhs) where left != right { return left.lexicographicallyPrecedes(right) }
        return false
    }

    private static func position(_ key: TreeKey, _ node: Node, _ index: TreeQuery.Index) -> [[Double]] {
        switch index {
        case .key: [[], rank(key)]
        case .priority: [rank(node.priority), rank(key)]
        case .value: [rank(node), rank(key)]
        case .child(let path): [rank(node.node(at: path)), rank(key)]
        }
    }

    private static func rank(_ node: Node) -> [Double] { node.childCount > 0 ? [9] : rank(node.value) }

    private static func rank(_ value: Scalar?) -> [Double] {
        switch value {
        case nil: [0]
        case .bool(let value): [value ? 2 : 1]
        case .integer(let value): [3, Double(value)]
        case .double(let value): [3, value]
        case .string(let value): [4] + value.utf16.map { Double($0) }
        case .deferred: [5]
        }
    }

    private static func rank(_ key: TreeKey) -> [Double] {
        let digits = key.string.hasPrefix("-") ? key.string.dropFirst() : key.string[...]
        let isNumber = !digits.isEmpty && digits.utf8.allSatisfy { $0 >= 0x30 && $0 <= 0x39 }
        if isNumber, let value = Double(key.string), abs(value) < 0x1p31 || value == -0x1p31 {
            return [0, value, Double(key.string.utf8.count), digits.count == key.string.count ? 1 : 0]
        }
        return [1] + key.string.utf16.map { Double($0) }
    }
}

extension SeededGenerator {
    fileprivate mutating func query() -> TreeQuery {
        var query = TreeQuery()
        let indexes: [TreeQuery.Index] = [.priority, .key, .value, .child("a"), .child("b/a")]
        query.index = indexes.randomElement(using: &self)!
        if isOne(in: 2) { query.start = bound(query.index) }
        if isOne(in: 2) { query.end = bound(query.index) }
        if isOne(in: 2) {
            query.limit = 1 + below(4)
            query.isLimitedToLast = isOne(in: 2)
        }
        return query
    }

    private mutating func bound(_ index: TreeQuery.Index) -> TreeQuery.Bound {
        let keys: [TreeQuery.BoundKey] = [.min, .max, .key(key()), .key(key()), .key("a ")]
        let value = index == .key || isOne(in: 4) ? nil : scalar()
        return TreeQuery.Bound(value: value, key: keys.randomElement(using: &self)!, isInclusive: isOne(in: 2))
    }
}

@Suite struct TreeQueryWindowTests {
    @Test func aWindowIsTheModels() throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var chance = SeededGenerator(seed: seed)
        var found = 0
        for _ in 0..<2000 {
            let node = Node(
                children: (0..<chance.below(9)).map { _ in (chance.key(), chance.node(depth: 2)) }, priority: 1)
            let query = chance.query()
            let window = QueryModel.window(query, node)
            found += window.count
            let note = "seed \(seed): \(query) of \(string(of: node))"
            try #require(query.orderedChildren(of: node).map(\.key) == window, "\(note)")
            if !query.isUnfiltered {
                #expect(query.result(of: node).children.map(\.key) == window.sorted(), "\(note)")
                #expect(query.result(of: node).priority == nil)
                var unlimited = query
                unlimited.limit = nil
                let inside = QueryModel.window(unlimited, node)
                for (key, child) in node.children {
                    #expect(query.contains(key, child) == inside.contains(key), "\(note) has \(key)")
                }
            }
            #expect(try TreeQuery(wire: query.wire) == query, "\(note) as \(string(of: query.wire))")
            let wire = string(of: query.wire)
            #expect(string(of: try TreeQuery(wire: json(wire)).wire) == wire, "\(note)")
        }
        #expect(found > 500)
    }

    @Test func valuesAreInTheirOrder() throws {
        let node = try tree(
            "{\"k\":{\"x\":1},\"j\":\"b\",\"i\":\"a\",\"h\":2,\"g\":1,\"f\":true,\"e\":false,\"d\":{\"x\":2},\"c\":1.0}"
        )
        var query = TreeQuery()
        query.index = .value
        #expect(query.orderedChildren(of: node).map(\.key) == ["e", "f", "c", "g", "h", "i", "j", "d", "k"])
        query.index = .child("x")
        #expect(query.orderedChildren(of: node).map(\.key) == ["c", "e", "f", "g", "h", "i", "j", "k", "d"])
    }

    @Test func aLeafAndAnEmptyLocationHaveNoResult() throws {
        var query = TreeQuery()
        query.limit = 1
        #expect(query.result(of: Node(5)).isEmpty)
        #expect(query.result(of: .empty).isEmpty)
        #expect(TreeQuery().result(of: Node(5)) == Node(5))
    }

    /// Large integers are compared as doubles, so that the order is consistent.
    @Test func integersBeyondTheDoublesAreTied() throws {
        let node = try tree("{\"c\":9007199254740992,\"a\":9007199254740993,\"b\":9007199254740992.0}")
        var query = TreeQuery()
        query.index = .value
        #expect(query.orderedChildren(of: node).map(\.key) == ["a", "b", "c"])
    }
}

@Suite struct TreeQueryWireTests {
    private let people = "{\"a\":{\"n\":1},\"b\":{\"n\":2},\"c\":{\"n\":2},\"d\":{\"n\":3},\"e\":{}, \"f\":true}"

    /// The forms in which the SDKs send bounds. Source: the public SDKs.
    @Test(arguments: [
        ("{}", "abcdf"),
        ("{\"i\":\"n\",\"sp\":2}", "bcd"),
        ("{\"i\":\"n\",\"sp\":2,\"sin\":true}", "bcd"),
        ("{\"i\":\"n\",\"sp\":2,\"sn\":\"c\"}", "cd"),
        ("{\"i\":\"n\",\"sp\":2,\"sn\":\"b\",\"sin\":false}", "cd"),
        ("{\"i\":\"n\",\"sp\":2,\"sn\":\"[MAX_NAME]\",\"sin\":false}", "d"),
        ("{\"i\":\"n\",\"sp\":2,\"sin\":false}", "d"),
        ("{\"i\":\"n\",\"sp\":2,\"sn\":\"[MAX_NAME]\"}", "d"),
        ("{\"i\":\"n\",\"sp\":2,\"sn\":\"b \"}", "cd"),
        ("{\"i\":\"n\",\"ep\":2}", "fabc"),
        ("{\"i\":\"n\",\"ep\":2,\"en\":\"b\"}", "fab"),
        ("{\"i\":\"n\",\"ep\":2,\"en\":\"b\",\"ein\":false}", "fa"),
        ("{\"i\":\"n\",\"ep\":2,\"en\":\"[MIN_NAME]\",\"ein\":false}", "fa"),
        ("{\"i\":\"n\",\"ep\":2,\"en\":\"[MIN_NAME]\"}", "fa"),
        ("{\"i\":\"n\",\"ep\":2,\"ein\":false}", "fa"),
        ("{\"i\":\"n\",\"sp\":2,\"ep\":2}", "bc"),
        ("{\"i\":\"n\",\"sp\":2,\"sn\":\"c\",\"ep\":2,\"en\":\"c\"}", "c"),
        ("{\"i\":\"n\",\"sp\":null}", "fabcd"),
        ("{\"i\":\"n\",\"sp\":null,\"sin\":false}", "abcd"),
        ("{\"i\":\"n\",\"ep\":null}", "f"),
        ("{\"i\":\"n\",\"sp\":false}", "abcd"),
        ("{\"i\":\"n\",\"sp\":{\".value\":2,\".priority\":1}}", "bcd"),
        ("{\"i\":\"n\",\"l\":2,\"vf\":\"l\"}", "fa"),
        ("{\"i\":\"n\",\"l\":2,\"vf\":\"r\"}", "cd"),
        ("{\"i\":\"n\",\"l\":2}", "cd"),
        ("{\"i\":\"n\",\"sp\":2,\"l\":2}", "bc"),
        ("{\"i\":\".key\",\"sp\":\"c\"}", "cdf"),
        ("{\"i\":\".key\",\"sp\":\"c\",\"sin\":false}", "df"),
        ("{\"i\":\".key\",\"sp\":\"c \"}", "df"),
        ("{\"i\":\".key\",\"sp\":\"[MAX_NAME]\"}", ""),
        ("{\"i\":\".key\",\"ep\":\"c\"}", "abc"),
        ("{\"i\":\".key\",\"ep\":\"c\",\"ein\":false}", "ab"),
        ("{\"i\":\".key\",\"ep\":\"[MIN_NAME]\"}", ""),
        ("{\"i\":\".value\",\"sp\":true,\"ep\":true}", "f"),
        ("{\"i\":\".priority\",\"sp\":null,\"sn\":\"c\"}", "cdf"),
        ("{\"sp\":null,\"sn\":\"c\",\"l\":1,\"vf\":\"l\"}", "c"),
    ])
    func boundsAreTheSDKs(_ wire: String, _ keys: String) throws {
        let query = try TreeQuery(wire: try json(wire))
        #expect(query.orderedChildren(of: try tree(people)).map(\.key.string).joined() == keys)
        #expect(try TreeQuery(wire: query.wire) == query)
    }

    @Test func thePriorityIsTheDefault() throws {
        let node = try tree(
            "{\"a\":{\".value\":1,\".priority\":\"x\"},\"b\":{\".value\":1,\".priority\":5},\"c\":1,\"d\":{\"y\":1,\".priority\":7}}"
        )
        for (wire, keys) in [("{}", "cbda"), ("{\"sp\":5}", "bda"), ("{\"ep\":5}", "cb"), ("{\"sp\":\"x\"}", "a")] {
            #expect(try TreeQuery(wire: json(wire)).orderedChildren(of: node).map(\.key.string).joined() == keys)
        }
    }

    @Test(arguments: [
        "[]", "1", "null", "{\"i\":1}", "{\"i\":\"\"}", "{\"i\":\"a.b\"}", "{\"i\":\".x\"}", "{\"l\":0}", "{\"l\":-1}",
        "{\"l\":1.5}",
        "{\"l\":\"1\"}", "{\"l\":2147483648}", "{\"l\":1,\"vf\":\"x\"}", "{\"l\":1,\"vf\":1}", "{\"sp\":[]}",
        "{\"sp\":{}}",
        "{\"sp\":{\".value\":{}}}", "{\"sp\":1,\"sn\":2}", "{\"sp\":1,\"sin\":1}", "{\"i\":\".key\",\"sp\":1}",
        "{\"i\":\".key\",\"ep\":null}",
    ])
    func brokenQueriesAreRefused(_ wire: String) throws {
        let wire = try json(wire)
        #expect(throws: TreeDataError.self) { try TreeQuery(wire: wire) }
    }
}

@Suite struct TreeQueryRESTTests {
    private let people = "{\"a\":{\"n\":1},\"b\":{\"n\":2},\"c\":{\"n\":2},\"d\":{\"n\":3},\"f\":true}"

    private func parameters(_ string: String) -> [(name: String, value: String)] {
        string.split(separator: "&").map { part in
            let pair = part.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            return (String(pair[0]), pair.count > 1 ? String(pair[1]) : "")
        }
    }

    @Test(arguments: [
        ("orderBy=\"n\"", "fabcd"),
        ("orderBy=\"n\"&startAt=2", "bcd"),
        ("orderBy=\"n\"&startAt=2,\"c\"", "cd"),
        ("orderBy=\"n\"&startAt= 2 , \"c\" ", "cd"),
        ("orderBy=\"n\"&startAfter=2", "d"),
        ("orderBy=\"n\"&startAfter=2,\"b\"", "cd"),
        ("orderBy=\"n\"&endAt=2", "fabc"),
        ("orderBy=\"n\"&endAt=2,\"b\"", "fab"),
        ("orderBy=\"n\"&endBefore=2", "fa"),
        ("orderBy=\"n\"&endBefore=2,\"c\"", "fab"),
        ("orderBy=\"n\"&equalTo=2", "bc"),
        ("orderBy=\"n\"&equalTo=2,\"c\"", "c"),
        ("orderBy=\"n\"&equalTo=null", "f"),
        ("orderBy=\"n\"&startAt=null&endAt=1", "fa"),
        ("orderBy=\"n\"&limitToFirst=2", "fa"),
        ("orderBy=\"n\"&limitToLast=2&print=pretty", "cd"),
        ("orderBy=\"$key\"", "abcdf"),
        ("orderBy=\"$key\"&startAt=\"c\"", "cdf"),
        ("orderBy=\"$key\"&startAfter=\"c\"", "df"),
        ("orderBy=\"$key\"&equalTo=\"c\"", "c"),
        ("orderBy=\"$key\"&endBefore=\"b\"", "a"),
        ("orderBy=\"$value\"&equalTo=true", "f"),
        ("orderBy=\"$priority\"&limitToLast=1", "f"),
        ("orderBy=\"/n/\"&startAt=3", "d"),
        ("shallow=true&limitToFirst=2", "ab"),
        ("shallow=true&limitToFirst=2&startAfter=b", "cd"),
        ("shallow=true&limitToFirst=2&startAfter=\"b\"", "cd"),
        ("shallow=true&orderBy=\"$key\"&startAt=\"d\"", "df"),
    ])
    func parametersMakeAWindow(_ string: String, _ keys: String) throws {
        let query = try #require(try TreeQuery(rest: parameters(string)))
        #expect(query.orderedChildren(of: try tree(people)).map(\.key.string).joined() == keys)
    }

    @Test func withoutAnyOfThemThereIsNoQuery() throws {
        #expect(try TreeQuery(rest: []) == nil)
        #expect(try TreeQuery(rest: parameters("shallow=true&auth=x&print=pretty")) == nil)
    }

    /// The error messages of the service.
    @Test(arguments: [
        ("startAt=1", "orderBy must be defined when other query parameters are defined"),
        ("limitToFirst=1", "orderBy must be defined when other query parameters are defined"),
        ("shallow=false&limitToLast=1", "orderBy must be defined when other query parameters are defined"),
        ("orderBy=n", "orderBy must be a valid JSON encoded path"),
        ("orderBy=", "orderBy must be a valid JSON encoded path"),
        ("orderBy=1", "orderBy must be a valid JSON encoded path"),
        ("orderBy=\"a.b\"", "orderBy must be a valid JSON encoded path"),
        ("orderBy=\"\"", "orderBy must be a valid JSON encoded path"),
        ("orderBy=\"$x\"", "orderBy must be a valid JSON encoded path"),
        ("orderBy=\"n\"&startAt=x", "Constraint index field must be a JSON primitive"),
        ("orderBy=\"n\"&startAt=", "Constraint index field must be a JSON primitive"),
        ("orderBy=\"n\"&endAt={}", "Constraint index field must be a JSON primitive"),
        ("orderBy=\"n\"&equalTo=[1]", "Constraint index field must be a JSON primitive"),
        ("orderBy=\"n\"&equalTo=1,2", "Constraint index field must be a JSON primitive"),
        ("orderBy=\"n\"&equalTo=1,\"a\",\"b\"", "Constraint index field must be a JSON primitive"),
        ("orderBy=\"$key\"&startAt=x", "Constraint index field must be a JSON primitive"),
        ("orderBy=\"$key\"&startAt=1", "Provided key index type is invalid, must be string"),
        ("orderBy=\"$key\"&equalTo=null", "Provided key index type is invalid, must be string"),
        ("orderBy=\"n\"&limitToFirst=1&limitToLast=1", "Only one of limitToFirst and limitToLast may be specified"),
        ("orderBy=\"n\"&limitToFirst=x", "limitToFirst must be an integer"),
        ("orderBy=\"n\"&limitToFirst=1.5", "limitToFirst must be an integer"),
        ("orderBy=\"n\"&limitToLast=\"1\"", "limitToLast must be an integer"),
        ("orderBy=\"n\"&limitToFirst=0", "limitToFirst must be positive"),
        ("orderBy=\"n\"&limitToLast=-1", "limitToLast must be positive"),
        (
            "orderBy=\"n\"&equalTo=1&startAt=1",
            "equalTo cannot be specified in addition to startAfter, startAt, endAt, or endBefore"
        ),
        (
            "orderBy=\"n\"&equalTo=1&endBefore=1",
            "equalTo cannot be specified in addition to startAfter, startAt, endAt, or endBefore"
        ),
        ("orderBy=\"n\"&startAt=1&startAfter=1", "Only one of startAt and startAfter may be specified"),
        ("orderBy=\"n\"&endAt=1&endBefore=1", "Only one of endAt and endBefore may be specified"),
    ])
    func errorsHaveTheServicesMessages(_ string: String, _ message: String) {
        let error = #expect(throws: TreeDataError.self) { try TreeQuery(rest: parameters(string)) }
        #expect(error?.message == message)
    }
}
