/// A change that depends on the stored value. Source: google.firestore.v1.DocumentTransform.FieldTransform.
@usableFromInline package struct FieldTransform: Sendable {
    @usableFromInline package enum Operation: Sendable {
        /// The time of the request, in whole milliseconds, one value for the whole commit.
        case requestTime
        /// The operand is an integer or a double, here and in `maximum` and `minimum`.
        case increment(Value)
        case maximum(Value)
        case minimum(Value)
        case appendMissingElements([Value])
        case removeAllFromArray([Value])
    }

    @usableFromInline package var path: FieldPath
    @usableFromInline package var operation: Operation

    @inlinable package init(path: FieldPath, operation: Operation) {
        self.path = path
        self.operation = operation
    }

    /// The server time of a request: whole milliseconds.
    @inlinable package static func serverTime(_ requestTime: Timestamp) -> Timestamp {
        Timestamp(microseconds: requestTime.microseconds - positiveRemainder(requestTime.microseconds, 1000))
    }

    /// The field's new value and the value reported in `transformResults`.
    /// - Parameter stored: the field's value, nil when it is missing.
    package func apply(to stored: Value?, requestTime: Timestamp) -> (value: Value, result: Value) {
        switch operation {
        case .requestTime:
            let time = Self.serverTime(requestTime)
            return (.timestamp(time), .timestamp(time))
        case .increment(let operand):
            let sum = Self.add(stored, operand)
            return (sum, sum)
        case .maximum(let operand):
            let greater = Self.extreme(stored, operand, keepStored: { $0 >= 0 })
            return (greater, greater)
        case .minimum(let operand):
            let lesser = Self.extreme(stored, operand, keepStored: { $0 <= 0 })
            return (lesser, lesser)
        case .appendMissingElements(let elements):
            return (.array(ElementSet.appending(elements, to: Self.elements(of: stored))), .null)
        case .removeAllFromArray(let elements):
            return (.array(ElementSet.removing(elements, from: Self.elements(of: stored))), .null)
        }
    }

    private static func elements(of stored: Value?) -> [Value] {
        if case .array(let elements)? = stored { elements } else { [] }
    }

    private static func add(_ stored: Value?, _ operand: Value) -> Value {
        switch (stored, operand) {
        case (.integer(let left)?, .integer(let right)):
            let (sum, overflow) = left.addingReportingOverflow(right)
            return .integer(overflow ? (right > 0 ? .max : .min) : sum)
        case (.integer(let left)?, .double(let right)): return add(Double(left), right)
        case (.double(let left)?, .integer(let right)): return add(left, Double(right))
        case (.double(let left)?, .double(let right)): return add(left, right)
        default: return operand
        }
    }

    /// The bits of a NaN sum depend on the compiler. One NaN replaces them all, so that equal commits store equal
    /// bytes.
    private static func add(_ left: Double, _ right: Double) -> Value {
        let sum = left + right
        return .double(sum.isNaN ? .nan : sum)
    }

    /// The greater or the lesser of two numbers. The stored one stays when they are equivalent; NaN always wins.
    private static func extreme(_ stored: Value?, _ operand: Value, keepStored: (Int) -> Bool) -> Value {
        guard let stored else { return operand }
        switch ValueOrder.typeClass(of: stored) {
        case .nan: return stored
        case .number:
            if case .double(let number) = operand, number.isNaN { return operand }
            return keepStored(ValueOrder.compare(stored, operand)) ? stored : operand
        default: return operand
        }
    }
}
