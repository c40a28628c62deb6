import HearthModel

/// A sum of int64 and double values: exact for integers whatever overflows on the way, compensated for doubles.
package struct NumberSum: Sendable {
    private var integers: Int128 = 0
    private var hasDouble = false
    private var sum = 0.0
    private var compensation = 0.0
    private var count = 0

    package init() {}

    /// Adds a number; values of other types are ignored.
    package mutating func add(_ value: Value) {
        switch value {
        case .integer(let number):
            integers += Int128(number)
            count += 1
        case .double(let number):
            hasDouble = true
            addCompensated(number)
            count += 1
        default: break
        }
    }

    /// Neumaier's summation.
    private mutating func addCompensated(_ number: Double) {
        let next = sum + number
        if next.isFinite {
            compensation += abs(sum) >= abs(number) ? (sum - next) + number : (number - next) + sum
        }
        sum = next
    }

    private var doubleTotal: Double {
        guard sum.isFinite else { return sum }
        // The integers' part is added as one more summand.
        var whole = self
        whole.addCompensated(Double(integers))
        return whole.sum + whole.compensation
    }

    /// An integer when all are integers and it fits, else a double; the integer 0 for nothing.
    package var total: Value {
        if !hasDouble {
            if let exact = Int64(exactly: integers) { return .integer(exact) }
            return .double(Double(integers))
        }
        return .double(doubleTotal)
    }

    /// A double, or null for nothing.
    package var average: Value {
        count == 0 ? .null : .double((hasDouble ? doubleTotal : Double(integers)) / Double(count))
    }
}
