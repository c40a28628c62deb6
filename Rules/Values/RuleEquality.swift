import HearthModel

/// Equality and hashes of values. Elements of lists and maps are compared by type too: `1 == 1.0`, but `[1] != [1.0]`.
extension Evaluation {
    /// `==` of rules.
    func equal(_ lhs: RuleValue, _ rhs: RuleValue) -> Bool {
        switch (lhs, rhs) {
        case (.string(let left), .string(let right)): UTF8Order.equal(left, right)
        case (.int(let left), .float(let right)): Double(left) == right
        case (.float(let left), .int(let right)): left == Double(right)
        case (.float(let left), .float(let right)): left == right
        default: identical(lhs, rhs)
        }
    }

    /// Equality within lists, sets and maps.
    func identical(_ lhs: RuleValue, _ rhs: RuleValue) -> Bool {
        switch (lhs, rhs) {
        case (.null, .null): return true
        case (.bool(let left), .bool(let right)): return left == right
        case (.int(let left), .int(let right)): return left == right
        case (.float(let left), .float(let right)): return left.bitPattern == right.bitPattern && !left.isNaN
        case (.string(let left), .string(let right)): return UTF8Order.equal(left, right)
        case (.bytes(let left), .bytes(let right)): return left == right
        case (.timestamp(let left), .timestamp(let right)), (.duration(let left), .duration(let right)):
            return left == right
        case (.latlng(let left), .latlng(let right)): return left.point == right.point
        case (.path(let left), .path(let right)): return RulePath.equal(left, right)
        case (.vector(let left), .vector(let right)): return left == right
        case (.list(let left), .list(let right)): return identicalLists(left, right)
        case (.map(let left), .map(let right)): return identicalMaps(left, right)
        case (.set(let left), .set(let right)):
            return left.count == right.count && left.elements.allSatisfy { right.contains($0, self) }
        case (.mapDiff(let left), .mapDiff(let right)):
            return left.added == right.added && left.removed == right.removed && left.changed == right.changed
                && left.unchanged == right.unchanged
        default: return false
        }
    }

    /// Equality in Firestore's order of values, at every depth, for differences of maps and sets. An unmodified NaN is
    /// unchanged, and so is a 1 that becomes 1.0.
    func equivalent(_ lhs: RuleValue, _ rhs: RuleValue) -> Bool {
        switch (lhs, rhs) {
        case (.float(let left), .float(let right)): return left == right || left.isNaN && right.isNaN
        case (.list(let left), .list(let right)):
            let count = left.count
            guard count == right.count, work(count) else { return false }
            return (0..<count).allSatisfy { equivalent(left[$0], right[$0]) }
        case (.map(let left), .map(let right)):
            let first = entries(of: left)
            let second = entries(of: right)
            guard first.count == second.count, work(first.count) else { return false }
            return first.indices.allSatisfy {
                UTF8Order.equal(first[$0].name, second[$0].name) && equivalent(first[$0].value, second[$0].value)
            }
        default: return equal(lhs, rhs)
        }
    }

    private func identicalLists(_ left: RuleList, _ right: RuleList) -> Bool {
        let count = left.count
        guard count == right.count, work(count) else { return false }
        for index in 0..<count where !identical(left[index], right[index]) { return false }
        return true
    }

    private func identicalMaps(_ left: RuleMap, _ right: RuleMap) -> Bool {
        if case .stored(let first) = left, case .stored(let second) = right, first.count != second.count {
            return false
        }
        let first = entries(of: left)
        let second = entries(of: right)
        guard first.count == second.count, work(first.count) else { return false }
        for index in first.indices {
            guard UTF8Order.equal(first[index].name, second[index].name),
                identical(first[index].value, second[index].value)
            else { return false }
        }
        return true
    }

    // MARK: Hashes

    /// Feeds a value to a hasher, so that identical values have equal hashes.
    /// - Parameter isLoose: equivalent values have equal hashes, too.
    func hash(_ value: RuleValue, into hasher: inout Hasher, isLoose: Bool) {
        switch value {
        case .null, .constraint, .error: break
        case .bool(let value): hasher.combine(value)
        // Zeros of both signs have one hash.
        case .int(let value) where isLoose: hasher.combine(Double(value))
        case .float(let value) where isLoose: hasher.combine(value.isNaN ? Double.nan : value)
        case .int(let value): hasher.combine(value)
        case .float(let value): hasher.combine(value.bitPattern)
        case .string(let value): UTF8Order.hash(value, into: &hasher)
        case .bytes(let value): hasher.combine(value)
        case .timestamp(let value), .duration(let value):
            hasher.combine(value.seconds)
            hasher.combine(value.nanoseconds)
        case .latlng(let value): hasher.combine(value.point)
        case .path(let value): UTF8Order.hash(value.string, into: &hasher)
        case .vector(let value): hasher.combine(value)
        case .list(let list):
            hasher.combine(list.count)
            guard work(list.count) else { return }
            for index in 0..<list.count { hash(list[index], into: &hasher, isLoose: isLoose) }
        case .map(let map):
            let entries = entries(of: map)
            hasher.combine(entries.count)
            guard work(entries.count) else { return }
            for entry in entries {
                UTF8Order.hash(entry.name, into: &hasher)
                hash(entry.value, into: &hasher, isLoose: isLoose)
            }
        // The order is undefined, so the hash only uses properties that do not depend on it.
        case .set(let set): hasher.combine(set.count)
        case .mapDiff(let diff):
            hasher.combine(diff.added.count)
            hasher.combine(diff.removed.count)
        }
    }
}
