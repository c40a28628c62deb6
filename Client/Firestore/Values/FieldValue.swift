internal import Foundation
internal import HearthModel

/// A placeholder in data for a value that the server computes.
public final class FieldValue: Sendable {
    enum Kind: Sendable {
        case delete
        case serverTimestamp
        /// The user's elements. They are checked together with the document.
        case arrayUnion(Carried<[Any]>)
        case arrayRemove(Carried<[Any]>)
        case increment(Value)
        case minimum(Value)
        case maximum(Value)
    }

    let kind: Kind

    private init(_ kind: Kind) { self.kind = kind }

    private static let deletion = FieldValue(.delete)
    private static let requestTime = FieldValue(.serverTimestamp)

    /// Removes the field. It is valid in `updateData`, and in `setData` with merge.
    /// - Returns: the placeholder, for a value in the data of a write.
    @discardableResult
    public class func delete() -> FieldValue { deletion }

    /// The time at which the server applies the write.
    /// - Returns: the placeholder, for a value in the data of a write.
    @discardableResult
    public class func serverTimestamp() -> FieldValue { requestTime }

    /// Adds the elements that the array does not contain yet. Any other value, or none, counts as an empty array.
    /// - Parameter elements: the elements, which are no arrays and no `FieldValue`s.
    /// - Returns: the placeholder, for a value in the data of a write.
    @discardableResult
    public class func arrayUnion(_ elements: [Any]) -> FieldValue { FieldValue(.arrayUnion(Carried(elements))) }

    /// Removes all equal elements from the array. Any other value, or none, becomes an empty array.
    /// - Parameter elements: the elements, which are no arrays and no `FieldValue`s.
    /// - Returns: the placeholder, for a value in the data of a write.
    @discardableResult
    public class func arrayRemove(_ elements: [Any]) -> FieldValue { FieldValue(.arrayRemove(Carried(elements))) }

    /// Adds to the number; any other value counts as 0.
    /// - Parameter amount: the number to add; negative to subtract.
    /// - Returns: the placeholder, for a value in the data of a write.
    @discardableResult
    public class func increment(_ amount: Double) -> FieldValue { FieldValue(.increment(.double(amount))) }
    /// Adds to the number; any other value counts as 0.
    /// - Parameter amount: the number to add; negative to subtract.
    /// - Returns: the placeholder, for a value in the data of a write.
    @discardableResult
    public class func increment(_ amount: Int64) -> FieldValue { FieldValue(.increment(.integer(amount))) }

    /// The smaller of the stored number and this one.
    /// - Parameter value: the number to compare with.
    /// - Returns: the placeholder, for a value in the data of a write.
    @discardableResult
    public class func minimum(_ value: Double) -> FieldValue { FieldValue(.minimum(.double(value))) }
    /// The smaller of the stored number and this one.
    /// - Parameter value: the number to compare with.
    /// - Returns: the placeholder, for a value in the data of a write.
    @discardableResult
    public class func minimum(_ value: Int64) -> FieldValue { FieldValue(.minimum(.integer(value))) }

    /// The greater of the stored number and this one.
    /// - Parameter value: the number to compare with.
    /// - Returns: the placeholder, for a value in the data of a write.
    @discardableResult
    public class func maximum(_ value: Double) -> FieldValue { FieldValue(.maximum(.double(value))) }
    /// The greater of the stored number and this one.
    /// - Parameter value: the number to compare with.
    /// - Returns: the placeholder, for a value in the data of a write.
    @discardableResult
    public class func maximum(_ value: Int64) -> FieldValue { FieldValue(.maximum(.integer(value))) }

    /// A vector for similarity search.
    /// - Parameter array: the elements: at most 2048 numbers.
    /// - Returns: the vector.
    @discardableResult
    public class func vector(_ array: [Double]) -> VectorValue { VectorValue(array) }
    /// A vector for similarity search.
    /// - Parameter array: the elements: at most 2048 numbers.
    /// - Returns: the vector.
    @discardableResult
    public class func vector(_ array: [Float]) -> VectorValue { VectorValue(array.map(Double.init)) }

    var methodName: String {
        switch kind {
        case .delete: "FieldValue.delete()"
        case .serverTimestamp: "FieldValue.serverTimestamp()"
        case .arrayUnion: "FieldValue.arrayUnion()"
        case .arrayRemove: "FieldValue.arrayRemove()"
        case .increment: "FieldValue.increment()"
        case .minimum: "FieldValue.minimum()"
        case .maximum: "FieldValue.maximum()"
        }
    }
}

extension FieldValue: Hashable, Encodable, CustomStringConvertible {
    public static func == (left: FieldValue, right: FieldValue) -> Bool { left === right }

    public func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }

    public func encode(to encoder: any Swift.Encoder) throws {
        throw FirestoreEncodingError.encodingIsNotSupported(
            "FieldValue values can only be encoded with Firestore.Encoder.")
    }

    public var description: String { methodName }
}
