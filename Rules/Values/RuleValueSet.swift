import HearthModel

/// Distinct values, in order of insertion. Sets compare their elements by Firestore's order of values, so that 1 and
/// 1.0 are one element, and NaN equals itself. A strict set, which replaces a list, distinguishes them.
final class RuleValueSet {
    private(set) var elements: [RuleValue] = []
    private let isStrict: Bool
    /// Positions by hash; only for sets above some size.
    private var index: [Int: [Int32]] = [:]
    private static let indexedSizeMin = 9

    init(_ elements: some Sequence<RuleValue>, _ evaluation: Evaluation, isStrict: Bool = false) {
        self.isStrict = isStrict
        for element in elements { insert(element, evaluation) }
    }

    convenience init(strings: [String], _ evaluation: Evaluation) {
        self.init(strings.map { .string($0) }, evaluation)
    }

    var count: Int { elements.count }

    private func isElement(_ element: RuleValue, _ value: RuleValue, _ evaluation: Evaluation) -> Bool {
        isStrict ? evaluation.identical(element, value) : evaluation.equivalent(element, value)
    }

    private func hash(_ value: RuleValue, _ evaluation: Evaluation) -> Int {
        var hasher = Hasher()
        evaluation.hash(value, into: &hasher, isLoose: !isStrict)
        return hasher.finalize()
    }

    func contains(_ value: RuleValue, _ evaluation: Evaluation) -> Bool {
        if elements.count < Self.indexedSizeMin {
            guard evaluation.work(elements.count) else { return false }
            return elements.contains { isElement($0, value, evaluation) }
        }
        guard let positions = index[hash(value, evaluation)], evaluation.work(positions.count) else { return false }
        return positions.contains { isElement(elements[Int($0)], value, evaluation) }
    }

    private func insert(_ value: RuleValue, _ evaluation: Evaluation) {
        if contains(value, evaluation) { return }
        elements.append(value)
        if elements.count < Self.indexedSizeMin { return }
        if elements.count == Self.indexedSizeMin {
            for position in elements.indices { note(position, evaluation) }
        } else {
            note(elements.count - 1, evaluation)
        }
    }

    private func note(_ position: Int, _ evaluation: Evaluation) {
        index[hash(elements[position], evaluation), default: []].append(Int32(clamping: position))
    }
}
