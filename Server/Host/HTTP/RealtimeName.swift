import HearthModel

/// Names of namespaces, as in host names and in `ns=`.
package enum RealtimeName {
    /// Letters, digits, hyphens, and the characters of old project names; the names become file names.
    package static func isValid(_ name: String) -> Bool {
        guard (1...Limits.realtimeNameBytesMax).contains(name.utf8.count) else { return false }
        return name.utf8.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."),
                UInt8(ascii: ":"):
                true
            default: false
            }
        }
    }

    /// The name of the default database of a project.
    package static func standard(ofProject project: String) -> String { project + "-default-rtdb" }

    /// The project whose default database has this name; nil for other names.
    package static func project(ofStandard name: String) -> String? {
        let suffix = standard(ofProject: "")
        return name.hasSuffix(suffix) && name.utf8.count > suffix.utf8.count ? String(name.dropLast(suffix.count)) : nil
    }

    private static let suffixes = [".firebaseio.com", ".firebasedatabase.app", ".localhost"]

    /// The first label of a host that has the shape of the service's (`NAME.firebaseio.com`,
    /// `NAME.REGION.firebasedatabase.app`) or is below `localhost`; nil for all others.
    package static func inHost(_ authority: String) -> String? {
        var host = authority.lowercased()
        if let colon = host.utf8.lastIndex(of: UInt8(ascii: ":")) { host = String(host[..<colon]) }
        guard suffixes.contains(where: { host.hasSuffix($0) }), let dot = host.utf8.firstIndex(of: UInt8(ascii: "."))
        else { return nil }
        let name = String(host[..<dot])
        return name.isEmpty ? nil : name
    }
}
