import Foundation
import HearthModel

/// The folder of a database's cache: `FOLDER/APP/NAMESPACE@HOST`.
enum CacheFolder {
    /// The default folder of all caches.
    static func standard(environment: [String: String]) throws(Status) -> String {
        if let data = environment["XDG_DATA_HOME"], data.hasPrefix("/") { return data + "/firebase-database" }
        guard let home = environment["HOME"], home.hasPrefix("/") else {
            throw .failedPrecondition(
                "The cache has no folder: neither XDG_DATA_HOME nor HOME is set. Set one, or name a folder with "
                    + "Database.persistenceDirectory.")
        }
        return home + "/.local/share/firebase-database"
    }

    static func folder(in folder: String, app: String, location: DatabaseLocation) -> String {
        "\(folder)/\(name(app))/\(name("\(location.namespace)@\(location.hostAndPort)"))"
    }

    /// Encodes a string as a file name. Different strings have different names, and no name is special to the
    /// system.
    private static func name(_ string: String) -> String {
        var name = ""
        for byte in string.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "@"):
                name.unicodeScalars.append(Unicode.Scalar(byte))
            default: name += "%" + (byte < 16 ? "0" : "") + String(byte, radix: 16)
            }
        }
        return name
    }
}
