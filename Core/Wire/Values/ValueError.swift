import HearthModel

/// The errors of a Value, in the service's wording.
enum ValueError {
    @inline(never)
    static func unset() -> Status { .invalidArgument("Cannot convert firestore.v1.Value with type unset.") }

    @inline(never)
    static func unsupported(_ name: StaticString) -> Status {
        .invalidArgument("Value type is not supported: \(name)")
    }
}
