import HearthModel

/// Keys from `lower` on, up to and excluding `upper`; nil for no bound.
@usableFromInline package struct KeyRange: Sendable, Equatable {
    @usableFromInline package var lower: [UInt8]
    @usableFromInline package var upper: [UInt8]?

    package init(lower: [UInt8], upper: [UInt8]?) {
        self.lower = lower
        self.upper = upper
    }

    /// All keys that begin with `prefix`.
    package init(prefix: [UInt8]) {
        lower = prefix
        upper = Self.successor(ofPrefix: prefix)
    }

    @inlinable package var isEmpty: Bool {
        guard let upper else { return false }
        return UTF8Order.compare(lower, upper) >= 0
    }

    package func contains(_ key: [UInt8]) -> Bool {
        UTF8Order.compare(key, lower) >= 0 && (upper.map { UTF8Order.compare(key, $0) < 0 } ?? true)
    }

    /// The first key after all keys that begin with `prefix`; nil when there is none.
    package static func successor(ofPrefix prefix: [UInt8]) -> [UInt8]? {
        var bound = prefix
        while let last = bound.last {
            if last < 0xFF {
                bound[bound.count - 1] = last + 1
                return bound
            }
            bound.removeLast()
        }
        return nil
    }
}
