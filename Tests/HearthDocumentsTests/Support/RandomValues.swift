import HearthModel
import HearthTestSupport

@testable import HearthDocuments

/// Makes values of all types, mostly from small sets so that they are equal often, with a preference for edge cases.
struct ValueMaker {
    var random: SeededGenerator

    init(_ random: SeededGenerator) {
        self.random = random
    }

    static let integers: [Int64] = [
        0, 1, 2, 3, -1, -2, 10, 255, 256, .max, .min, .max - 1, .min + 1, 1 << 53, (1 << 53) + 1, (1 << 53) - 1,
        -(1 << 53), -(1 << 53) - 1, 1 << 62, (1 << 62) + 1, 9_223_372_036_854_774_784, 9_223_372_036_854_774_783,
    ]

    static let doubles: [Double] = [
        0, -0.0, 1, 2, 3, -1, 0.5, 1.5, 2.5, .infinity, -.infinity, .nan, -.nan, .greatestFiniteMagnitude,
        .leastNonzeroMagnitude, -.leastNonzeroMagnitude, 0x1p53, -0x1p53, 0x1p63, -0x1p63, 0x1p64, 0x1p62,
        0x1p63.nextDown, (-0x1p63).nextDown, 0x1p53.nextUp, 0x1p53.nextDown,
    ]

    static let strings: [String] = [
        "", "a", "b", "ab", "a\u{0}", "a\u{0}b", "\u{0}", "a\u{1}", "z", "é", "e\u{301}", "日本", "\u{FFFD}", "😀",
        "\u{E000}",
    ]

    /// Longer than an index stores, with long common prefixes.
    static let longStrings: [String] = {
        let head = String(repeating: "x", count: 1490)
        var strings: [String] = []
        for length in 1494...1500 {
            let base = head + String(repeating: "x", count: length - 1490)
            strings.append(base)
            strings.append(base + "a")
            strings.append(base + "\u{0}")
        }
        for ending in ["a", "b", "\u{0}", "\u{0}\u{1}", "é", "aa"] {
            strings.append(head + String(repeating: "x", count: 100) + ending)
        }
        return strings
    }()

    static let references: [String] = [
        "projects/p/databases/(default)/documents/c/a", "projects/p/databases/(default)/documents/c/a/d/b",
        "projects/p/databases/(default)/documents/c/a-", "projects/p/databases/(default)/documents/c/__id7__",
        "projects/p/databases/(default)/documents/c/__id-7__", "projects/p/databases/d2/documents/c/a",
        "projects/q/databases/(default)/documents/c/a", "projects/p/databases/(default)/documents/c/a\u{0}",
    ]

    mutating func scalar() -> Value {
        switch random.below(24) {
        case 0: .null
        case 1: .boolean(random.chance(50))
        case 2...7: .integer(random.chance(70) ? Int64(random.below(4)) : random.pick(Self.integers))
        case 8...12: .double(random.pick(Self.doubles))
        case 13: .timestamp(Timestamp(microseconds: Int64(random.below(3)) - 1))
        case 14...18: .string(random.pick(Self.strings))
        case 19: .string(random.pick(Self.longStrings))
        case 20:
            .bytes(
                random.chance(70) ? Array(random.pick(Self.strings).utf8) : Array(random.pick(Self.longStrings).utf8))
        case 21: .reference(random.pick(Self.references))
        default:
            .geoPoint(
                GeoPoint(latitude: Double(random.below(3)) - 1, longitude: random.pick([-180.0, -0.0, 0, 0.5])))
        }
    }

    mutating func value(depth: Int = 2) -> Value {
        guard depth > 0 else { return scalar() }
        switch random.below(20) {
        case 0...1: return .array(elements(depth: depth))
        case 2: return .array(longElements())
        case 3: return .vector(vector())
        case 4...5: return .map(map(depth: depth))
        case 6:
            // Long maps that differ late.
            var map = MapValue()
            for index in 0..<30 { map.set("k\(index)", .integer(Int64(index))) }
            map.set("z", scalar())
            return .map(map)
        default: return scalar()
        }
    }

    mutating func elements(depth: Int) -> [Value] {
        (0..<random.below(4)).map { _ in
            // Arrays hold neither arrays nor vectors.
            random.chance(80) ? scalar() : .map(map(depth: depth - 1))
        }
    }

    /// More than an index stores of an array; such arrays differ in their last elements.
    mutating func longElements() -> [Value] {
        (0..<(26 + random.below(5))).map { .integer(Int64($0)) } + [scalar()]
    }

    mutating func vector() -> [Double] {
        let dimension = random.pick([1, 2, 2, 3, 30])
        return (0..<dimension).map { _ in random.pick([0, 1, -1, 0.5, .nan, .infinity]) }
    }

    mutating func map(depth: Int) -> MapValue {
        var map = MapValue()
        for _ in 0..<random.below(3) {
            map.set(
                random.pick(["x", "y", "", "é", "x.y", "a\u{0}"]).ifEmpty("w"),
                depth > 1 ? value(depth: depth - 1) : scalar())
        }
        return map
    }
}

extension String {
    fileprivate func ifEmpty(_ other: String) -> String { isEmpty ? other : self }
}
