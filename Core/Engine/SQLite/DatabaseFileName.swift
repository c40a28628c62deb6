import HearthModel

/// The path of a database in the data folder: `PROJECT/DATABASE.sqlite`.
///
/// A component is its id with every byte except `a-z 0-9 - _ ( )` and inner dots as `%` and two lower-case hexadecimal
/// digits. Upper-case letters are encoded as well, so that a file system that ignores case distinguishes "A" and "a".
/// Most ids are their own component: `demo-shop/(default).sqlite`.
///
/// An encoded id of more than 100 bytes becomes its first 60 bytes, `~` and 32 digits of a hash, because file systems
/// allow 255 bytes a component and SQLite 512 a path. Next to such a component a file `COMPONENT.id` contains the id.
package struct DatabaseFileName: Hashable {
    static let suffix = ".sqlite"
    static let idSuffix = ".id"
    /// Behind the file's name: of SQLite's write-ahead log, of the folder with the database's log, and of the file while its
    /// database is being deleted.
    static let walSuffix = "-wal"
    static let logSuffix = "-log"
    static let deletedSuffix = "-deleted"
    /// Whether a file or folder belongs to a database: its file, its logs, what is left of a deleted one.
    package static func isOfDatabase(_ name: String) -> Bool {
        // Dots of ids aren't encoded.
        name.hasSuffix(suffix)
            || [walSuffix, logSuffix, deletedSuffix, DiskProbe.suffix, "-shm", "-journal"].contains {
                name.hasSuffix(suffix + $0)
            }
    }

    static let encodedLengthMax = 100
    static let keptLength = 60

    /// The project's folder.
    var folder: String
    /// The database's file without its suffix.
    var file: String

    init(_ name: DatabaseName) {
        folder = Self.component(name.project)
        file = Self.component(name.database)
    }

    package static func component(_ id: String) -> String {
        let encoded = encode(id)
        if encoded.utf8.count <= encodedLengthMax { return encoded }
        return String(encoded.prefix(keptLength)) + "~" + hash(id)
    }

    /// Whether the last component of a path doesn't contain the whole id.
    static func isShortened(_ path: String) -> Bool {
        path.utf8.reversed().prefix { $0 != UInt8(ascii: "/") }.contains(UInt8(ascii: "~"))
    }

    /// The files with the full ids of a database's shortened components, relative to the folder.
    package static func idFiles(of database: DatabaseName) -> [(path: String, id: String)] {
        let name = DatabaseFileName(database)
        let file = "\(name.folder)/\(name.file)"
        return [(name.folder, database.project), (file, database.database)]
            .filter { isShortened($0.0) }.map { (path: $0.0 + idSuffix, id: $0.1) }
    }

    private static func encode(_ id: String) -> String {
        var encoded: [UInt8] = []
        let dot = UInt8(ascii: ".")
        for byte in id.utf8 {
            let isPlain =
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
                case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "("), UInt8(ascii: ")"): true
                // A leading dot hides the file, or makes "..".
                case dot: !encoded.isEmpty
                default: false
                }
            if isPlain {
                encoded.append(byte)
            } else {
                encoded.append(UInt8(ascii: "%"))
                encoded.append(hexadecimal(byte >> 4))
                encoded.append(hexadecimal(byte & 15))
            }
        }
        return String(decoding: encoded, as: UTF8.self)
    }

    private static func hexadecimal(_ digit: UInt8) -> UInt8 {
        digit < 10 ? UInt8(ascii: "0") + digit : UInt8(ascii: "a") + digit - 10
    }

    /// The id of a component that isn't shortened; nil when it isn't one of ours.
    static func id(ofComponent component: String) -> String? {
        var bytes: [UInt8] = []
        var rest = component.utf8[...]
        while let byte = rest.popFirst() {
            if byte != UInt8(ascii: "%") {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst(), let low = rest.popFirst() else { return nil }
            guard let high = value(high), let low = value(low) else { return nil }
            bytes.append(high << 4 | low)
        }
        guard let id = String(validating: bytes, as: UTF8.self), !id.isEmpty, self.component(id) == component else {
            return nil
        }
        return id
    }

    private static func value(_ digit: UInt8) -> UInt8? {
        switch digit {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): digit - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): digit - UInt8(ascii: "a") + 10
        default: nil
        }
    }

    /// FNV-1a over two starting values. Collisions can be made, but the id's file reveals them.
    private static func hash(_ id: String) -> String {
        var digits: [UInt8] = []
        for start: UInt64 in [0xCBF2_9CE4_8422_2325, 0x6C62_272E_07BB_0142] {
            var hash = start
            for byte in id.utf8 { hash = (hash ^ UInt64(byte)) &* 0x0000_0100_0000_01B3 }
            for shift in stride(from: 60, through: 0, by: -4) {
                digits.append(hexadecimal(UInt8(truncatingIfNeeded: hash >> UInt64(shift)) & 15))
            }
        }
        return String(decoding: digits, as: UTF8.self)
    }
}
