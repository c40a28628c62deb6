import HearthModel

/// The pages of a list that is sorted by the time of creation, newest first.
struct PagedList {
    let page: Range<Int>
    /// Empty on the last page.
    let nextPageToken: String

    /// - Parameters:
    ///   - keys: of all items, in the order of the list.
    ///   - size: 0 for the default.
    ///   - list: identifies the list; a token of another list fails with INVALID_ARGUMENT.
    init(keys: [String], size: Int, token: String, list: [String]) throws(Status) {
        if size < 0 { throw .invalidArgument("The page size must not be negative.") }
        let fingerprint = PageToken.fingerprint(list)
        var start = 0
        if let given = try PageToken(token, fingerprint: fingerprint) {
            let position = String(decoding: given.position, as: UTF8.self)
            start = keys.firstIndex { UTF8Order.compare($0, position) < 0 } ?? keys.count
        }
        let count = min(size == 0 ? Limits.rulesPageSizeDefault : size, Limits.rulesPageSizeMax)
        let end = min(start + count, keys.count)
        page = start..<end
        guard end < keys.count, end > start else {
            nextPageToken = ""
            return
        }
        let next = PageToken(readTime: Timestamp(microseconds: 0), position: Array(keys[end - 1].utf8))
        nextPageToken = next.string(fingerprint: fingerprint)
    }

    /// A time as sixteen digits that sort as the times do.
    static func digits(_ time: Timestamp) -> String {
        let digits = String(max(time.microseconds, 0), radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }
}
