/// Chooses which connections without a request are closed when a server has as many as it may.
///
/// The address with the most connections loses one first, so that one client cannot keep the others out. Of one address
/// those that never sent anything come first, then those that have been idle for longest.
enum IdleConnections {
    struct Candidate: Equatable {
        var address: Substring
        var isSilent: Bool
        /// In monotonic nanoseconds.
        var since: UInt64
    }

    /// The positions of the candidates to close, in order.
    /// - Parameter counts: open connections by address, in use or not.
    static func chosen(_ candidates: [Candidate], counts: [Substring: Int], max: Int) -> [Int] {
        let inOrder = candidates.indices.sorted { first, second in
            let (first, second) = (candidates[first], candidates[second])
            return first.isSilent != second.isSilent ? first.isSilent : first.since < second.since
        }
        // How many connections its address has when a candidate's time comes.
        var remaining = counts
        let levels = inOrder.map { position in
            let level = remaining[candidates[position].address, default: 1]
            remaining[candidates[position].address] = level - 1
            return level
        }
        return inOrder.indices.sorted { levels[$0] != levels[$1] ? levels[$0] > levels[$1] : $0 < $1 }
            .prefix(max).map { inOrder[$0] }
    }

    /// Closes connections of a loop, on it.
    static func close(in context: LoopContext, max: Int) {
        var counts: [Substring: Int] = [:]
        var candidates: [Candidate] = []
        var channels: [SocketChannel] = []
        for channel in context.table.channels {
            let address = host(channel.remoteAddress)
            counts[address, default: 0] += 1
            guard let since = channel.idleSince else { continue }
            candidates.append(Candidate(address: address, isSilent: !channel.hasReceived, since: since))
            channels.append(channel)
        }
        for position in chosen(candidates, counts: counts, max: max) {
            context.counters.connectionsDisplaced.add(1)
            channels[position].closeIdle()
        }
    }

    /// The address without the port.
    private static func host(_ address: String) -> Substring {
        address.lastIndex(of: ":").map { address[..<$0] } ?? address[...]
    }
}
