import HearthModel

/// The next and the previous possible key, by which the SDKs for Apple and Android convert exclusive bounds into
/// inclusive ones. Characters are compared as UTF-16 does; the least character of a key is the space. Source: the
/// public SDKs for Apple and Android.
///
/// The result need not be a valid key. The neighbours of numbers are numbers, although a longer spelling of the same
/// number would be between them: the SDKs do the same.
extension TreeKey {
    private static let least: Unicode.Scalar = " "
    private static let greatest: Unicode.Scalar = "\u{FFFF}"
    private static let greatestInteger = TreeKey(Int(Int32.max))

    package var successor: TreeQuery.BoundKey {
        if let integer {
            return .key(integer == .max ? TreeKey(String(Self.least)) : TreeKey(Int(integer) + 1))
        }
        if string.utf16.count < Limits.treeKeySizeBytesMax { return .key(TreeKey(string + String(Self.least))) }
        var scalars = Array(string.unicodeScalars)
        while let last = scalars.popLast() {
            if let next = Self.next(last) { return .key(Self.key(scalars + [next])) }
        }
        return .max
    }

    package var predecessor: TreeQuery.BoundKey {
        if let integer { return integer == .min ? .min : .key(TreeKey(Int(integer) - 1)) }
        var scalars = Array(string.unicodeScalars)
        guard let last = scalars.popLast() else { return .min }
        guard last > Self.least, let previous = Self.previous(last) else {
            return .key(scalars.isEmpty ? Self.greatestInteger : Self.key(scalars))
        }
        scalars.append(previous)
        let count = scalars.reduce(0) { $0 + UTF16.width($1) }
        scalars.append(
            contentsOf: repeatElement(Self.greatest, count: max(Limits.treeKeySizeBytesMax - count, 0)))
        return .key(Self.key(scalars))
    }

    private static func key(_ scalars: [Unicode.Scalar]) -> TreeKey {
        var string = String.UnicodeScalarView()
        string.append(contentsOf: scalars)
        return TreeKey(String(string))
    }

    /// In the order of UTF-16, where all characters beyond U+FFFF are between U+D7FF and U+E000.
    private static func next(_ scalar: Unicode.Scalar) -> Unicode.Scalar? {
        switch scalar.value {
        case 0xD7FF: Unicode.Scalar(0x10000)
        case 0x10FFFF: Unicode.Scalar(0xE000)
        case 0xFFFF: nil
        default: Unicode.Scalar(scalar.value + 1)
        }
    }

    private static func previous(_ scalar: Unicode.Scalar) -> Unicode.Scalar? {
        switch scalar.value {
        case 0: nil
        case 0x10000: Unicode.Scalar(0xD7FF)
        case 0xE000: Unicode.Scalar(0x10FFFF)
        default: Unicode.Scalar(scalar.value - 1)
        }
    }
}
