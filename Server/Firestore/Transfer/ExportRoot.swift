import Glibc
import HearthExport
import HearthHost
import HearthModel
import HearthNetwork
import HearthWire

/// The folder that exports and imports of the admin API may use (`--export-folder`): their URIs name folders in it.
package struct ExportRoot: Sendable {
    /// Without links, `.` and `..`.
    package let path: String

    /// Makes the folder when its parent exists, and removes exports that an earlier process left unfinished.
    /// - Parameter dataFolder: which must not be inside of it, nor the other way round; nil for none.
    /// - Throws: when it cannot be used.
    package init(_ path: String, dataFolder: String? = nil) throws(Status) {
        if !Folders.exists(path) { try Folders.create(path) }
        guard Folders.isFolder(path) else { throw .failedPrecondition("\(path) is not a folder.") }
        self.path = try Folders.resolved(path)
        if let dataFolder, Folders.exists(dataFolder) {
            let data = try Folders.resolved(dataFolder)
            guard !isInside(data), !(self.path + "/").utf8.starts(with: (data + "/").utf8) else {
                throw .invalidArgument("The folder for exports, \(path), and the data folder must not hold each other.")
            }
        }
        _ = Folders.removeAbandoned(in: self.path)
    }

    /// The folder of a new export.
    /// - Parameter uri: `file:///ABSOLUTE`, or relative to the root; empty for a generated name.
    /// - Throws: INVALID_ARGUMENT for other URIs, PERMISSION_DENIED for folders outside of the root, ALREADY_EXISTS for
    ///   one that is not empty.
    func newFolder(_ uri: String, now: Timestamp) throws(Status) -> String {
        var folder = try resolve(uri)
        if folder == path { folder += "/" + Self.generatedName(now) }
        // Such a folder would be taken for an unfinished export, and be removed at the next start.
        for name in folder.utf8.dropFirst(path.utf8.count).split(separator: UInt8(ascii: "/"))
        where name.starts(with: Folders.partialPrefix.utf8) {
            throw .invalidArgument(
                "The name \"\(String(Substring(name)))\" begins like that of an unfinished export; choose another one.")
        }
        guard Folders.exists(folder) else { return folder }
        guard Folders.isFolder(folder), try Folders.names(folder).isEmpty else {
            throw Status(.alreadyExists, "\(Self.uri(folder)) exists, and is not an empty folder.")
        }
        return folder
    }

    /// An export that is there.
    /// - Throws: NOT_FOUND; INVALID_ARGUMENT and PERMISSION_DENIED as for new ones; what is wrong with its metadata.
    func export(_ uri: String) throws(Status) -> ExportFolder {
        if uri.isEmpty { throw .invalidArgument("The inputUriPrefix is missing: it names the export.") }
        let folder = try resolve(uri)
        guard Folders.exists(folder) else { throw .notFound("There is no \(Self.uri(folder)).") }
        guard let file = try ExportFolder.find(folder) else {
            throw .invalidArgument("There is no export in \(Self.uri(folder)).")
        }
        let resolved = try Folders.resolved(file)
        guard isInside(resolved) else { throw outside(uri) }
        return try ExportFolder(resolved)
    }

    /// The name of a folder as a URI of the API.
    static func uri(_ path: String) -> String {
        let segments = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
            .map { URLCoding.encode(String(Substring($0))).replacing("%3A", with: ":") }
        return "file://" + segments.joined(separator: "/")
    }

    /// In the form of Google's service: `2025-03-02T00:00:05_24305`.
    private static func generatedName(_ now: Timestamp) -> String {
        let time = RFC3339.format(seconds: now.seconds, nanoseconds: 0)
        let digits = String(Int(now.nanoseconds) / 10_000)
        return time.dropLast() + "_" + String(repeating: "0", count: 5 - digits.count) + digits
    }

    // MARK: Paths

    private func resolve(_ uri: String) throws(Status) -> String {
        if uri.utf8.count > Limits.exportURIBytesMax {
            throw .invalidArgument(
                "A URI has at most \(Limits.exportURIBytesMax) bytes; this one has \(uri.utf8.count).")
        }
        let string = try plainPath(uri)
        guard !string.utf8.contains(0) else { throw .invalidArgument("A path must not hold NUL bytes.") }
        guard string.utf8.count < PATH_MAX else {
            throw .invalidArgument("A path must have at most \(PATH_MAX - 1) bytes.")
        }
        // Of bytes, as the system reads it: of characters, a slash and a combining accent behind it are one.
        let slash = UInt8(ascii: "/")
        var found = string.utf8.first == slash ? "" : path
        for bytes in string.utf8.split(separator: slash) {
            let segment = String(Substring(bytes))
            if segment == "." { continue }
            if segment == ".." {
                found = found.utf8.lastIndex(of: slash).map { String(found[..<$0]) } ?? ""
                continue
            }
            found += "/" + segment
            // What does not exist holds no links.
            if Folders.exists(found) { found = try Folders.resolved(found) }
        }
        guard isInside(found.isEmpty ? "/" : found) else { throw outside(uri) }
        return found
    }

    private func plainPath(_ uri: String) throws(Status) -> String {
        guard let colon = uri.firstIndex(of: ":"),
            uri[..<colon].allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber) }),
            uri[uri.index(after: colon)...].hasPrefix("/")
        else { return uri }
        let scheme = uri[..<colon].lowercased()
        var rest = uri[uri.index(after: colon)...]
        guard scheme == "file" else { throw unknown(uri) }
        if rest.hasPrefix("//") {
            rest = rest.dropFirst(2)
            if rest.hasPrefix("localhost/") { rest = rest.dropFirst("localhost".count) }
        }
        guard rest.hasPrefix("/"), let decoded = URLCoding.decode(rest) else { throw unknown(uri) }
        return decoded
    }

    private func unknown(_ uri: String) -> Status {
        .invalidArgument(
            "The URI \"\(uri)\" cannot be used: expected file:///ABSOLUTE/PATH inside of \(path), or a path relative to it. "
                + "Buckets (gs://) are copied with gcloud storage.")
    }

    private func outside(_ uri: String) -> Status {
        Status(.permissionDenied, "\"\(uri)\" is outside of \(path), the folder of --export-folder.")
    }

    private func isInside(_ resolved: String) -> Bool {
        let prefix = path == "/" ? "/" : path + "/"
        return resolved.utf8.elementsEqual(path.utf8) || resolved.utf8.starts(with: prefix.utf8)
    }
}
