import HearthConcurrency

extension BrokenInvariants {
    /// Logs them, each with its stack.
    package convenience init(log: Log) {
        self.init(report: { broken, unreported in
            var fields: [Log.Field] = [("condition", .string("\(broken.condition)"))]
            if unreported > 0 { fields.append(("unreported", .integer(unreported))) }
            fields.append(("stack", .string(broken.stack.joined(separator: " < "))))
            log.record(.error, "a condition of the program does not hold; a connection or a request ended", fields)
        })
    }
}
