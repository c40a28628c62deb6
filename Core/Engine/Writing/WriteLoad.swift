/// Writes that wait for a writer.
package struct WriteLoad: Sendable {
    package var count: Int
    package var bytes: Int
    /// In the units of the writer.
    package var cost: Int
    /// Writes that are worked out beside the writer.
    package var slow: Int

    package init(count: Int = 0, bytes: Int = 0, cost: Int = 0, slow: Int = 0) {
        self.count = count
        self.bytes = bytes
        self.cost = cost
        self.slow = slow
    }

    package mutating func add(_ other: WriteLoad) {
        count += other.count
        bytes += other.bytes
        cost += other.cost
        slow += other.slow
    }

    package mutating func remove(_ other: WriteLoad) {
        count -= other.count
        bytes -= other.bytes
        cost -= other.cost
        slow -= other.slow
    }
}
