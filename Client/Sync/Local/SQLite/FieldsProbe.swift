import HearthModel
import HearthWire

/// A fast check of stored fields that rejects many non-matching documents without decoding them.
struct FieldsProbe {
    private struct Check {
        var path: FieldPath
        /// nil: the field must exist, with any value.
        var comparison: (op: Filter.Operator, operand: Value)?
    }

    private let checks: [Check]

    init(_ query: ClientQuery) {
        var checks: [Check] = []
        for case .field(let path, let op, let operand) in query.filters.flattened where !path.isDocumentName {
            switch op {
            case .equal, .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual:
                checks.append(Check(path: path, comparison: (op, operand)))
            default: checks.append(Check(path: path))
            }
        }
        let compared = Set(checks.map(\.path))
        for order in query.normalizedOrders where !order.field.isDocumentName && !compared.contains(order.field) {
            checks.append(Check(path: order.field))
        }
        self.checks = checks
    }

    /// False only when a document with these fields cannot match.
    func mayMatch(_ fields: UnsafeRawBufferPointer) throws(Status) -> Bool {
        if checks.isEmpty { return true }
        let reader = FieldsReader([UInt8](fields))
        for check in checks {
            guard let comparison = check.comparison else {
                if try reader.locate(check.path) == nil { return false }
                continue
            }
            guard let value = try reader.value(at: check.path),
                ClientValueOrder.areComparable(value, comparison.operand),
                Self.holds(comparison.op, ClientValueOrder.compare(value, comparison.operand))
            else { return false }
        }
        return true
    }

    private static func holds(_ op: Filter.Operator, _ order: Int) -> Bool {
        switch op {
        case .equal: order == 0
        case .lessThan: order < 0
        case .lessThanOrEqual: order <= 0
        case .greaterThan: order > 0
        case .greaterThanOrEqual: order >= 0
        default: true
        }
    }
}
