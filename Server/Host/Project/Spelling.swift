/// Suggests known names for a mistyped name.
package enum Spelling {
    /// The known name nearest to `name`, if it is similar enough.
    package static func nearest(to name: String, among known: [String]) -> String? {
        let bytes = Array(name.utf8)
        // A longer string is not a typing error; this also bounds the work.
        guard bytes.count <= 64 else { return nil }
        let distances = known.map { ($0, distance(bytes, Array($0.utf8))) }
        guard let best = distances.min(by: { $0.1 < $1.1 }) else { return nil }
        return best.1 <= max(1, bytes.count / 3) ? best.0 : nil
    }

    /// `; did you mean "x"?`, or nothing.
    package static func hint(for name: String, among known: [String]) -> String {
        nearest(to: name, among: known).map { "; did you mean \"\($0)\"?" } ?? "."
    }

    /// The number of insertions, deletions, replacements and swaps of neighbours between two strings.
    static func distance(_ a: [UInt8], _ b: [UInt8]) -> Int {
        var rows = [[Int]](repeating: [Int](repeating: 0, count: b.count + 1), count: a.count + 1)
        for i in 0...a.count { rows[i][0] = i }
        for j in 0...b.count { rows[0][j] = j }
        for i in 1...max(1, a.count) where i <= a.count {
            for j in 1...max(1, b.count) where j <= b.count {
                let replaced = rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1)
                rows[i][j] = min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, replaced)
                if i > 1, j > 1, a[i - 1] == b[j - 2], a[i - 2] == b[j - 1] {
                    rows[i][j] = min(rows[i][j], rows[i - 2][j - 2] + 1)
                }
            }
        }
        return rows[a.count][b.count]
    }
}
