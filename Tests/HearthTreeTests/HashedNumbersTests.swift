import HearthTree
import Testing

@testable import HearthTree

/// Source of the expected bits: `doubleToIEEE754String` of firebase-js-sdk, run in Node.js 20.
@Suite struct HashedNumbersTests {
    private static let computed: [(value: UInt64, web: UInt64)] = [
        (0x007FFFFFFFFFF582, 0x0070000000000000),
        (0x009000000000034A, 0x0090000000000000),
        (0x0090000000000A44, 0x0090000000000000),
        (0x009FFFFFFFFFF82A, 0x0090000000000000),
        (0x00B000000000032D, 0x00B0000000000000),
        (0x00B00000000007BA, 0x00B0000000000000),
        (0x00BFFFFFFFFFFB8F, 0x00B0000000000000),
        (0x00D00000000004DD, 0x00D0000000000000),
        (0x00DFFFFFFFFFF7FE, 0x00D0000000000000),
        (0x0100000000000077, 0x0100000000000000),
        (0x010FFFFFFFFFFC8B, 0x0100000000000000),
        (0x0110000000000A8A, 0x0110000000000000),
        (0x016FFFFFFFFFF770, 0x0160000000000000),
        (0x0180000000000664, 0x0180000000000000),
        (0x01B0000000000877, 0x01B0000000000000),
        (0x026FFFFFFFFFF4B8, 0x0260000000000000),
        (0x027FFFFFFFFFF76E, 0x0270000000000000),
        (0x0280000000000045, 0x0280000000000000),
        (0x02B0000000000153, 0x02B0000000000000),
        (0x033FFFFFFFFFF6DC, 0x0330000000000000),
        (0x0BA0000000000025, 0x0B9000000000004A),
        (0x172FFFFFFFFFFF99, 0x173FFFFFFFFFFFCD),
        (0x1F1FFFFFFFFFFFC7, 0x1F2FFFFFFFFFFFE4),
        (0x1F8FFFFFFFFFFF31, 0x1F9FFFFFFFFFFF99),
        (0x2B1FFFFFFFFFFFC6, 0x2B2FFFFFFFFFFFE3),
        (0x2BBFFFFFFFFFFFDD, 0x2BCFFFFFFFFFFFEF),
        (0x2ECFFFFFFFFFFFA5, 0x2EDFFFFFFFFFFFD3),
        (0x37BFFFFFFFFFFFE1, 0x37CFFFFFFFFFFFF1),
        (0x5D3FFFFFFFFFFFFE, 0x5D4FFFFFFFFFFFFF),
        (0x626FFFFFFFFFFD8D, 0x627FFFFFFFFFFEC7),
        (0x646FFFFFFFFFFEF3, 0x647FFFFFFFFFFF7A),
        (0x650FFFFFFFFFFEA2, 0x651FFFFFFFFFFF51),
        (0x665FFFFFFFFFFF00, 0x666FFFFFFFFFFF80),
        (0x680FFFFFFFFFFDB0, 0x681FFFFFFFFFFED8),
        (0x689FFFFFFFFFFDED, 0x68AFFFFFFFFFFEF7),
        (0x689FFFFFFFFFFEC8, 0x68AFFFFFFFFFFF64),
        (0x68EFFFFFFFFFFEB1, 0x68FFFFFFFFFFFF59),
        (0x6E5FFFFFFFFFFEE7, 0x6E6FFFFFFFFFFF74),
        (0x6EBFFFFFFFFFFFC5, 0x6ECFFFFFFFFFFFE3),
        (0x718FFFFFFFFFFFA6, 0x719FFFFFFFFFFFD3),
        (0x3E20000000000000, 0x3E10000000000000),
        (0x404FFFFFFFFFFFFF, 0x4050000000000000),
        (0x433FFFFFFFFFFFFD, 0x434FFFFFFFFFFFFF),
        (0x433FFFFFFFFFFFFE, 0x434FFFFFFFFFFFFF),
        (0x433FFFFFFFFFFFFF, 0x4340000000000000),
    ]

    @Test func numbersNearPowersOfTwoAreWrongOnTheWeb() {
        for (value, web) in Self.computed {
            #expect(HashedNumbers.web.bits(Double(bitPattern: value)) == web, "\(Double(bitPattern: value))")
            let minus = UInt64(1) << 63
            #expect(HashedNumbers.web.bits(-Double(bitPattern: value)) == web | minus)
            #expect(HashedNumbers.exact.bits(Double(bitPattern: value)) == value)
            #expect(HashedNumbers.differ(.double(Double(bitPattern: value))))
        }
        #expect(HashedNumbers.differ(.integer(9_007_199_254_740_991)))
    }

    /// Also the greatest and the least numbers, and those that are nearly wrong.
    @Test func othersAreRight() {
        let numbers: [Double] = [
            0, -0.0, 1, -1, 0.1, 3, 500, 64, 1024, 0.5, 0.25, 1e21, 1e300, 5e-324, 2.2250738585072009e-308,
            .greatestFiniteMagnitude, 0.9999999999999999, 1.0000000000000002, 1.7976931348623155e308,
        ]
        for number in numbers {
            #expect(HashedNumbers.web.bits(number) == number.bitPattern, "\(number)")
            #expect(!HashedNumbers.differ(.double(number)))
        }
        for value: Scalar in [.bool(true), .string("63.99999999999999"), .integer(0), .integer(.min), .integer(4096)] {
            #expect(!HashedNumbers.differ(value))
        }
    }

    /// The hash of a tree with several such numbers, and with a priority that is one.
    @Test func aTreeHasTwoHashes() throws {
        func hash(_ node: Node, _ numbers: HashedNumbers) -> NodeHashBuilder {
            var builder = NodeHashBuilder(numbers)
            send(node, nil, to: &builder)
            return builder
        }
        let string =
            #"{"list":{"x":{"n":9007199254740991},"y":{"n":127.99999999999999},"z":{"n":0.1}},".priority":63.99999999999999}"#
        let node = try TreeJSON.node(Array(string.utf8))
        #expect(hash(node, .web).hash == "ivPWYfxQ5c7zdk/Y8hLNqvw3Eto=")
        #expect(hash(node, .exact).hash == node.hash)
        #expect(hash(node, .exact).differsOnWeb)
        let usual = try TreeJSON.node(Array(#"{"a":[1,2.5],".priority":3}"#.utf8))
        #expect(!hash(usual, .exact).differsOnWeb)
        #expect(hash(usual, .web).hash == usual.hash)
    }

    private func send(_ node: Node, _ key: TreeKey?, to builder: inout NodeHashBuilder) {
        if let value = node.value { return builder.leaf(key, value, priority: node.priority) }
        builder.open(key, priority: node.priority)
        for (key, child) in node.children { send(child, key, to: &builder) }
        builder.close()
    }
}
