/// The content of a leaf, without a large string.
package enum Leaf: Sendable, Equatable {
    case value(Scalar)
    /// The UTF-8 size of a large string.
    case largeString(sizeBytes: Int)

    /// Strings of more bytes are large, in UTF-8.
    package static let stringSizeBytesMax = 512

    package init(_ value: Scalar) {
        if case .string(let string) = value, string.utf8.count > Self.stringSizeBytesMax {
            self = .largeString(sizeBytes: string.utf8.count)
        } else {
            self = .value(value)
        }
    }
}
