import HearthModel

/// The name of a child.
///
/// Two names are equal when their bytes are: to Swift's `String`, two spellings of "é" are one. The order is the
/// database's own: names that have the form of 32-bit integers come first, by number, and of one number the shorter
/// spelling ("-0" before "00"); all others follow by UTF-16 code units.
package struct TreeKey: Sendable {
    package let string: String

    package init(_ string: String) { self.string = string }

    package init(_ number: Int) { string = String(number) }

    /// Its number when it has the form of a 32-bit integer: `-`, zeros, then at most ten digits.
    package var integer: Int32? { Self.withBytes(string) { Self.integer($0) } }

    private static func integer(_ bytes: UnsafeBufferPointer<UInt8>) -> Int32? {
        guard let first = bytes.first else { return nil }
        let isNegative = first == UInt8(ascii: "-")
        var index = isNegative ? 1 : 0
        guard index < bytes.count else { return nil }
        var magnitude: Int64 = 0
        var digits = 0
        while index < bytes.count {
            let digit = bytes[index] &- UInt8(ascii: "0")
            guard digit < 10 else { return nil }
            if magnitude != 0 || digit != 0 {
                digits += 1
                if digits > 10 { return nil }
                magnitude = magnitude * 10 + Int64(digit)
            }
            index += 1
        }
        return Int32(exactly: isNegative ? -magnitude : magnitude)
    }

    /// Its UTF-8, without a copy for Swift's native strings.
    static func withBytes<Result>(_ string: String, _ body: (UnsafeBufferPointer<UInt8>) -> Result) -> Result {
        if let result = string.utf8.withContiguousStorageIfAvailable(body) { return result }
        var string = string
        return string.withUTF8(body)
    }

    /// Its number when it can be an index of an array: canonical, not negative.
    package var arrayIndex: Int? {
        guard let first = string.utf8.first, first >= 0x30, first <= 0x39, first != 0x30 || string.utf8.count == 1,
            let integer
        else { return nil }
        return Int(integer)
    }
}

extension TreeKey: Hashable {
    package static func == (lhs: TreeKey, rhs: TreeKey) -> Bool {
        UTF8Order.compare(lhs.string, rhs.string) == 0
    }

    package func hash(into hasher: inout Hasher) {
        var string = string
        string.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
    }
}

extension TreeKey: Comparable {
    package static func < (lhs: TreeKey, rhs: TreeKey) -> Bool { compare(lhs, rhs) < 0 }

    /// Negative, zero or positive, as `lhs` is before, at or after `rhs`.
    package static func compare(_ lhs: TreeKey, _ rhs: TreeKey) -> Int {
        withBytes(lhs.string) { left in withBytes(rhs.string) { right in compare(left, right) } }
    }

    private static func compare(_ left: UnsafeBufferPointer<UInt8>, _ right: UnsafeBufferPointer<UInt8>) -> Int {
        switch (integer(left), integer(right)) {
        case (let one?, let other?):
            if one != other { return one < other ? -1 : 1 }
            let lengths = left.count - right.count
            // Zero has two spellings of each length, "-0" and "00".
            return lengths != 0 ? lengths : UTF16Order.compare(left, right)
        case (_?, nil): return -1
        case (nil, _?): return 1
        case (nil, nil): return UTF16Order.compare(left, right)
        }
    }
}

extension TreeKey: ExpressibleByStringLiteral, CustomStringConvertible {
    package init(stringLiteral value: String) { self.init(value) }
    package var description: String { string }
}
