/// The framing of LevelDB's log. Source: LevelDB, `doc/log_format.md`.
///
/// A file is blocks of 32 KiB. A record is one fragment, or several when it does not fit into its block:
///
///     masked CRC-32C of type and data (4, little-endian) · length of data (2) · type (1) · data
///
/// Fewer than seven bytes left in a block are zeros. A header of zeros ends the block: Firestore fills the last block
/// of a file in this way.
enum LogFormat {
    static let blockBytes = 32 << 10
    static let headerBytes = 7

    enum Fragment {
        static let full: UInt8 = 1
        static let first: UInt8 = 2
        static let middle: UInt8 = 3
        static let last: UInt8 = 4
    }
}
