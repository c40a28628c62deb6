import HearthModel

/// The `orderBy` of ListDocuments: `a, b desc, __name__`.
package enum OrderByString {
    /// - Throws: `INVALID_ARGUMENT` `Invalid order by clause "…"` when the string is malformed; an empty string means
    ///   no order.
    package static func parse(_ string: String) throws(Status) -> [Query.Order] {
        if string.utf8.allSatisfy({ isSpace($0) }) { return [] }
        var orders: [Query.Order] = []
        for clause in clauses(string) { orders.append(try order(clause, in: string)) }
        try Query.Order.validate(orders)
        return orders
    }

    /// The parts between commas; a comma in backquotes belongs to a name.
    private static func clauses(_ string: String) -> [[UInt8]] {
        var clauses: [[UInt8]] = [[]]
        var isQuoted = false
        var isEscaped = false
        for byte in string.utf8 {
            if isEscaped {
                isEscaped = false
            } else if isQuoted, byte == UInt8(ascii: "\\") {
                isEscaped = true
            } else if byte == UInt8(ascii: "`") {
                isQuoted.toggle()
            } else if byte == UInt8(ascii: ","), !isQuoted {
                clauses.append([])
                continue
            }
            clauses[clauses.count - 1].append(byte)
        }
        return clauses
    }

    /// One path, optionally followed by a direction.
    private static func order(_ clause: [UInt8], in string: String) throws(Status) -> Query.Order {
        var path = clause.drop { isSpace($0) }
        while let last = path.last, isSpace(last) { path.removeLast() }
        var descending = false
        // A direction is the last word, when another word precedes it; quoted names cannot end with a letter.
        if let space = path.lastIndex(where: { isSpace($0) }) {
            switch path[(space + 1)...].map({ $0 | 0x20 }) {
            case Array("desc".utf8): descending = true
            case Array("asc".utf8): break
            default:
                // The space may be inside backquotes; the path's parser decides.
                return Query.Order(field: try field(path, in: string), descending: false)
            }
            path = path[..<space]
            while let last = path.last, isSpace(last) { path.removeLast() }
        }
        return Query.Order(field: try field(path, in: string), descending: descending)
    }

    private static func field(_ path: ArraySlice<UInt8>, in string: String) throws(Status) -> FieldPath {
        do throws(Status) {
            return try FieldPath(parsing: String(decoding: path, as: UTF8.self))
        } catch {
            throw .invalidArgument("Invalid order by clause \"\(string)\"")
        }
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0d).contains(byte) }
}
