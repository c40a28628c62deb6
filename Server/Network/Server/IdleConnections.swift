/// Chooses which connections without a request are closed when a server has as many as it may.
///
/// The peer with the most connections loses one first, so that one client cannot keep the others out. Of one peer those
/// that never sent anything come first, then those that have been idle for longest.
enum IdleConnections {
    struct Candidate: Equatable {
        /// See `SocketChannel.account`.
        var account: UInt64
        var isSilent: Bool
        /// In monotonic nanoseconds.
        var since: UInt64
        /// What its end frees.
        var size = 1
    }

    /// The positions of the candidates to close, in order.
    /// - Parameters:
    ///   - counts: open connections by account, in use or not.
    ///   - size: what is to be freed.
    static func chosen(_ candidates: [Candidate], counts: [UInt64: Int], size: Int) -> [Int] {
        let inOrder = candidates.indices.sorted { first, second in
            let (first, second) = (candidates[first], candidates[second])
            return first.isSilent != second.isSilent ? first.isSilent : first.since < second.since
        }
        // How many connections its peer has when a candidate's time comes.
        var remaining = counts
        let levels = inOrder.map { position in
            let level = remaining[candidates[position].account, default: 1]
            remaining[candidates[position].account] = level - 1
            return level
        }
        var freed = 0
        return inOrder.indices.sorted { levels[$0] != levels[$1] ? levels[$0] > levels[$1] : $0 < $1 }
            .map { inOrder[$0] }
            .prefix { position in
                defer { freed += candidates[position].size }
                return freed < size
            }
    }

    /// Closes connections of a loop, on it.
    static func close(in context: LoopContext, max: Int) {
        var counts: [UInt64: Int] = [:]
        for channel in context.table.channels { counts[channel.account, default: 0] += 1 }
        close(in: context.table, of: context.loop, counts: counts, size: max) { _ in 1 }
    }

    /// Closes connections of a loop, in a job or a timer of it. They are closed when its next jobs begin: some are sent a
    /// last frame first.
    /// - Parameters:
    ///   - size: what is to be freed.
    ///   - sizeOf: what the end of a connection frees; nil for one that has to stay.
    /// - Returns: what will be free.
    @discardableResult
    static func close(
        in table: ChannelTable, of loop: EventLoop, counts: [UInt64: Int], size: Int,
        sizeOf: (SocketChannel) -> Int?
    ) -> Int {
        var candidates: [Candidate] = []
        var channels: [SocketChannel] = []
        for channel in table.channels {
            guard let size = sizeOf(channel), let since = channel.idleSince else { continue }
            candidates.append(
                Candidate(account: channel.account, isSilent: !channel.hasReceived, since: since, size: size))
            channels.append(channel)
        }
        let chosen = chosen(candidates, counts: counts, size: size)
        let closing = chosen.map { channels[$0] }
        for channel in closing {
            channel.counters.connectionsDisplaced.add(1)
            channel.closeIdle()
        }
        // Those of peers that read nothing would stay open until the last frame is sent.
        if !closing.isEmpty { loop.execute { for channel in closing { channel.close() } } }
        return chosen.reduce(0) { $0 + candidates[$1].size }
    }
}
