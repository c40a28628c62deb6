import CSQLite

/// The SQLite that this process is linked with.
package enum SQLiteLibrary {
    package static var version: String { String(cString: sqlite3_libversion()) }

    /// Whether it has the defect of `LogIndex`.
    package static var hasLogResetDefect: Bool { hasLogResetDefect(Int(sqlite3_libversion_number())) }

    /// - Parameter number: 3_040_001 for 3.40.1.
    static func hasLogResetDefect(_ number: Int) -> Bool {
        switch number {
        // Backports of the correction.
        case 3_044_006..<3_045_000, 3_050_007..<3_051_000: false
        default: (3_007_000...3_051_002).contains(number)
        }
    }
}
