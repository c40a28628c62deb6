// HearthFirestore: the public API of FirebaseFirestore, on Linux.
//
// Code written for Apple platforms compiles with only the import changed. The public classes check what the user says
// (`Data/`), put it into the engine's words (`Engine/`, over `HearthSync.SyncClient`), and the engine's answers back into
// Foundation's types. A call that breaks the API's rules ends the program with a message, as an Objective-C exception
// does on Apple platforms: every such call has an internal twin that throws a `Status`, which tests call.
//
// Names of `HearthModel` and `HearthSync` never appear in public signatures: both are imported internally, and where a
// name exists on both sides, `ModelNames.swift` has another for the inner one.

@_exported public import Foundation
@_exported public import HearthApp

/// Where a transaction's closure puts its error. Foundation on Linux has no such name.
public typealias NSErrorPointer = UnsafeMutablePointer<NSError?>?

/// Samples write `100 * 1024 * 1024 as NSNumber`, in which all literals become numbers of Foundation.
/// - Returns: the exact product for integers; the program ends on overflow.
public func * (left: NSNumber, right: NSNumber) -> NSNumber {
    if left.holdsFloatingPoint || right.holdsFloatingPoint {
        return NSNumber(value: left.doubleValue * right.doubleValue)
    }
    return NSNumber(value: left.int64Value * right.int64Value)
}
