internal import Foundation

/// A vector for similarity search.
public final class VectorValue: Hashable, Codable, Sendable, CustomStringConvertible {
    /// The elements of the vector.
    public let array: [Double]

    /// A vector with the given elements.
    /// - Parameter array: the elements: at most 2048 numbers.
    public init(_ array: [Double]) { self.array = array }

    private enum CodingKeys: String, CodingKey { case array }

    public static func == (left: VectorValue, right: VectorValue) -> Bool { left.array == right.array }

    public func hash(into hasher: inout Hasher) { hasher.combine(array) }

    public var description: String { "VectorValue(\(array))" }
}
