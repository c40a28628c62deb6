import HearthModel
import HearthTree

/// Decides whether a write may be made.
///
/// Evaluated on the writer's thread when the write's values are computed, or beside it. In the second case the write is
/// made when the data that the guard has read is still the same. No write can come between the decision and the write.
/// It must not wait.
package protocol TreeGuard: Sendable {
    /// The basis of the decision besides the data; while it is the same object, the decision on the same data is the
    /// same.
    var basis: (any AnyObject & Sendable)? { get }

    /// - Parameters:
    ///   - update: the changes, with all deferred values computed.
    ///   - after: the tree after the write.
    ///   - now: milliseconds since 1970, the instant of the whole request.
    ///   - stepsMax: the limit of its steps, of a fraction of a microsecond each; nil for its general limit.
    /// - Throws: the reason why the write may not be made: PERMISSION_DENIED; RESOURCE_EXHAUSTED when it takes more
    ///   than `stepsMax`.
    func judge(
        _ update: [TreeChange], before: any TreeData, after: any TreeData, now: Int64, stepsMax: Int?
    ) throws(Status)
}

extension TreeGuard {
    package var basis: (any AnyObject & Sendable)? { nil }
}
