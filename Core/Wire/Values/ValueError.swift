import HearthModel

/// The errors of a Value, in the service's wording.
package enum ValueError {
    @inline(never)
    package static func unset() -> Status { .invalidArgument("Cannot convert firestore.v1.Value with type unset.") }

    @inline(never)
    static func unsupported(_ name: StaticString) -> Status {
        .invalidArgument("Value type is not supported: \(name)")
    }
}
