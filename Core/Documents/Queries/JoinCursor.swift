import HearthModel

/// The suffixes that several sources have in common: each leaps to the farthest of the others.
final class JoinCursor {
    private let cursors: [SuffixCursor]

    init(_ cursors: [SuffixCursor]) {
        self.cursors = cursors
    }

    var suffix: [UInt8] { cursors[0].suffix }
    func document() throws(Status) -> StoredDocument? { try cursors[0].document() }

    func next() throws(Status) -> Bool {
        guard try cursors[0].next() else { return false }
        if cursors.count == 1 { return true }
        var target = cursors[0].suffix
        var agreeing = 1
        var index = 1
        while agreeing < cursors.count {
            let cursor = cursors[index]
            if cursor.suffix.isEmpty || cursor.isBefore(cursor.suffix, target) {
                guard try cursor.seek(target) else { return false }
            }
            if UTF8Order.compare(cursor.suffix, target) == 0 {
                agreeing += 1
            } else {
                target = cursor.suffix
                agreeing = 1
            }
            index = (index + 1) % cursors.count
        }
        return true
    }
}
