import HearthConcurrency
import HearthModel
import HearthDocuments

/// Reports problems of the system's clock to the operator.
package enum ClockReport {
    /// Checks the clock. To be called some times a second.
    package static func check(_ clock: SteadyClock, _ log: Log) {
        switch clock.tick() {
        case nil: break
        case .stepped(let microseconds)?:
            log.warning(
                "the system clock stepped; the server continues with its own time",
                ("seconds", .number(Double(microseconds) / 1e6)))
        case .returned?: log.warning("the system clock came back")
        case .followed(let microseconds)?:
            log.warning(
                "the step of the system clock has persisted; the server follows it",
                ("seconds", .number(Double(microseconds) / 1e6)))
        }
    }

    /// Warns of a database whose commits are ahead of the clock.
    package static func opened(_ database: Database, _ log: Log) {
        guard let seconds = database.clockSkewSeconds else { return }
        log.warning(
            "commits of the database lie ahead of the system clock", ("database", .string(database.name.string)),
            ("seconds", .integer(Int(clamping: seconds))))
    }
}
