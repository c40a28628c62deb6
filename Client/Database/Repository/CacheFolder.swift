import Foundation
import HearthModel

/// Where a database's cache lies: `FOLDER/APP/NAMESPACE@HOST`.
enum CacheFolder {
    /// The folder of all caches that no one named one for.
    static func standard(environment: [String: String]) throws(Status) -> String {
        if let data = environment["XDG_DATA_HOME"], data.hasPrefix("/") { return data + "/firebase-database" }
        guard let home = environment["HOME"], home.hasPrefix("/") else {
            throw .failedPrecondition(
                "There is no place for the cache: neither XDG_DATA_HOME nor HOME is set. Set one, or name a folder with "
                    + "Database.persistenceDirectory.")
        }
        return home + "/.local/share/firebase-database"
    }

    static func folder(in folder: String, app: String, location: DatabaseLocation) -> String {
        "\(folder)/\(name(app))/\(name("\(location.namespace)@\(location.hostAndPort)"))"
    }

    /// A text as the name of a file: different texts have different names, and none is special to the system.
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
