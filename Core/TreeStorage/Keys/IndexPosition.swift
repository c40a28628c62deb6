import HearthModel
import HearthEngine
import HearthTree

/// The positions of children in the order of an index, as the bytes of its entries (`IndexCode`). Long strings whose
/// stored beginnings are equal count as one position.
extension TreeQuery {
    /// The position of a child.
    package static func position(of key: TreeKey, _ value: TreeIndexValue) -> [UInt8] {
        var bytes: [UInt8] = []
        value.append(to: &bytes)
        PathCode.append(key, to: &bytes)
        return bytes
    }

    /// The position of the children without an order value.
    package static var positionsWithoutValue: KeyRange { KeyRange(prefix: [IndexCode.null]) }

    /// The range of positions of the children within the bounds.
    package var positions: KeyRange { entries(behind: []) }

    /// The same, from the side of the limit up to a child.
    package func positions(upTo key: TreeKey, _ value: TreeIndexValue) -> KeyRange {
        var range = positions
        var bound: [UInt8] = []
        value.append(to: &bound)
        if !value.isCut { PathCode.append(key, to: &bound) }
        if isLimitedToLast {
            if UTF8Order.compare(range.lower, bound) < 0 { range.lower = bound }
        } else {
            let upper = PathCode.after(bound)
            if range.upper.map({ UTF8Order.compare(upper, $0) < 0 }) ?? true { range.upper = upper }
        }
        return range
    }

    /// All entries that may be within the bounds; too many for a long string's value.
    func entries(behind prefix: [UInt8]) -> KeyRange {
        var range = KeyRange(prefix: prefix)
        if let start {
            let (bound, isCut) = Self.code(start, prefix)
            switch start.key {
            case .max where !isCut: range.lower = PathCode.after(bound)
            case .key(let key) where !isCut: range.lower = PathCode.bound(bound, key)
            case .min, .max, .key: range.lower = bound
            }
        }
        if let end {
            let (bound, isCut) = Self.code(end, prefix)
            switch end.key {
            case .min where !isCut: range.upper = bound
            case .key(let key) where !isCut: range.upper = PathCode.after(PathCode.bound(bound, key))
            case .min, .max, .key: range.upper = PathCode.after(bound)
            }
        }
        return range
    }

    private static func code(_ bound: TreeQuery.Bound, _ prefix: [UInt8]) -> (bytes: [UInt8], isCut: Bool) {
        var bytes = prefix
        IndexCode.append(bound.value, to: &bytes)
        return (bytes, TreeIndexValue(bound.value).isCut)
    }
}

extension TreeIndexValue {
    /// Whether its entry contains only the beginning.
    fileprivate var isCut: Bool {
        if case .scalar(.string(let string)) = self { IndexCode.isCut(string) } else { false }
    }
}
