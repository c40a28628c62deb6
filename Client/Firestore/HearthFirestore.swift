// HearthFirestore: the public API of FirebaseFirestore on Linux.
//
// Code for Apple platforms compiles after a change of the import. The public classes check the user's data (`Data/`),
// convert it for the engine (`Engine/`, over `HearthSync.SyncClient`), and convert the engine's answers to Foundation's
// types. A call that breaks the API's rules ends the program with a message, as an Objective-C exception does on Apple
// platforms. Every such call has an internal form that throws a `Status`; tests call that form.
//
// Names of `HearthModel` and `HearthSync` never appear in public signatures: both are imported internally. Where a name
// exists on both sides, `ModelNames.swift` has another name for the inner type.

@_exported public import Foundation
@_exported public import HearthApp

/// The error pointer of a transaction's closure. Foundation on Linux has no such name.
public typealias NSErrorPointer = UnsafeMutablePointer<NSError?>?

/// Supports `100 * 1024 * 1024 as NSNumber`, which Apple's samples use: all its literals become `NSNumber`s.
/// - Parameters:
///   - left: the first factor.
///   - right: the second factor.
/// - Returns: the product: exact for integers, where overflow ends the program, and a `Double` when one of the factors
///   is a floating-point number.
public func * (left: NSNumber, right: NSNumber) -> NSNumber {
    if left.holdsFloatingPoint || right.holdsFloatingPoint {
        return NSNumber(value: left.doubleValue * right.doubleValue)
    }
    return NSNumber(value: left.int64Value * right.int64Value)
}
