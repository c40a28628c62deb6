import HearthModel

/// The values of deferred values. Source: `ServerValue` of the SDKs.
extension ServerValue {
    /// - Parameter old: the present value when the write is made.
    package func resolved(nowMilliseconds: Int64, old: Scalar?) -> Scalar {
        switch (self, old) {
        case (.timestamp, _): return .integer(nowMilliseconds)
        case (.increment(let delta), .integer(let value)):
            let (sum, overflow) = value.addingReportingOverflow(delta)
            return overflow ? .double(Double(value) + Double(delta)) : .integer(sum)
        case (.increment(let delta), .double(let value)): return sum(value, Double(delta))
        case (.increment(let delta), _): return .integer(delta)
        case (.incrementDouble(let delta), _): return sum(old?.number ?? 0, delta)
        }
    }

    /// Infinity cannot be stored: the sum stays at the largest number.
    private func sum(_ left: Double, _ right: Double) -> Scalar {
        let sum = left + right
        if let number = Scalar.canonical(sum) { return number }
        return .double(sum > 0 ? .greatestFiniteMagnitude : -.greatestFiniteMagnitude)
    }
}

extension Node {
    /// The node with values in place of deferred ones.
    /// - Parameters:
    ///   - old: the tree that the write finds: increments add to it.
    ///   - path: the location of the write in `old`.
    package func resolved(
        nowMilliseconds: Int64, old: any TreeData, at path: TreePath
    ) throws(Status) -> Node {
        guard hasDeferred else { return self }
        let priority: Scalar? =
            if case .deferred(let value)? = priority {
                value.resolved(nowMilliseconds: nowMilliseconds, old: try old.priority(at: path))
            } else {
                self.priority
            }
        if let value {
            guard case .deferred(let deferred) = value else { return with(priority: priority) }
            return Node(
                deferred.resolved(nowMilliseconds: nowMilliseconds, old: try old.value(at: path)), priority: priority)
        }
        var resolved: [(TreeKey, Node)] = []
        resolved.reserveCapacity(childCount)
        for (key, child) in children {
            let child = try child.resolved(nowMilliseconds: nowMilliseconds, old: old, at: path.child(key))
            resolved.append((key, child))
        }
        return Node(children: resolved, priority: priority)
    }

    /// Whether it contains a deferred value.
    package var hasDeferred: Bool {
        if priority?.isDeferred == true || value?.isDeferred == true { return true }
        return inner?.contains { $0.node.hasDeferred } ?? false
    }
}

extension TreeChange {
    /// The change with values in place of deferred ones.
    package func resolved(nowMilliseconds: Int64, old: any TreeData) throws(Status) -> TreeChange {
        guard isPriority else {
            return TreeChange(
                path: path, node: try node.resolved(nowMilliseconds: nowMilliseconds, old: old, at: path))
        }
        guard case .deferred(let value)? = node.value else { return self }
        let present = try old.priority(at: location)
        return TreeChange(path: path, node: Node(value.resolved(nowMilliseconds: nowMilliseconds, old: present)))
    }
}
