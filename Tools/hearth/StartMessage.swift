import HearthModel
import Glibc
import HearthHost

/// The message for people when the server has started.
enum StartMessage {
    /// - Parameter databasePort: of the second address; nil when there is none.
    static func block(_ settings: ServeSettings, port: Int, databasePort: Int? = nil, folder: String?) -> String {
        let scheme = settings.tlsCertificate == nil ? "http" : "https"
        let databaseHost = databasePort == nil ? settings.host : settings.databaseHost ?? settings.host
        let database = address(reachable(databaseHost), databasePort ?? port)
        var lines = [
            "Hearth \(HearthVersion.string) is serving Cloud Firestore and the Realtime Database.", "",
            "  address   \(scheme)://\(address(settings.host, port))  (gRPC and REST)",
            "  database  \(scheme)://\(database)/?ns=\(settings.project)-default-rtdb  (Realtime Database)",
            "  data      \(folder ?? "in memory, lost at the end")",
            "  project   \(settings.project)",
        ]
        if !settings.indexFiles.isEmpty {
            let indexes = settings.indexes.values.reduce(0) { $0 + $1.indexes.count }
            let overrides = settings.indexes.values.reduce(0) { $0 + $1.overrides.count }
            lines.append(
                "  indexes   \(indexes) composite, \(overrides) field overrides (\(settings.indexFiles.joined(separator: ", ")))"
            )
        }
        lines.append("  access    \(access(settings))")
        lines += [
            "", "  export FIRESTORE_EMULATOR_HOST=\(address(reachable(settings.host), port))",
            "  export FIREBASE_DATABASE_EMULATOR_HOST=\(database)", "  export GOOGLE_CLOUD_PROJECT=\(settings.project)",
        ]
        if !settings.isEmulator || settings.tlsCertificate != nil {
            lines += [
                "", "  Do not set the first two for clients of this server: with them SDKs connect without",
                "  TLS and send \"owner\", and it refuses that. Name its address in the client instead.",
            ]
        }
        lines += ["", "Ctrl-C ends it.", ""]
        return lines.joined(separator: "\n")
    }

    private static func access(_ settings: ServeSettings) -> String {
        let files = settings.rules.sorted { $0.key < $1.key }.map(\.value).joined(separator: ", ")
        switch (settings.isEmulator, settings.rules.isEmpty) {
        case (true, true): return "open to everybody: local development, no rules"
        case (true, false): return "\(files); local development: \"owner\" and unsigned tokens are believed"
        case (false, true): return "administrators only: there are no rules"
        case (false, false): return files
        }
    }

    /// A client cannot connect to a wildcard address.
    static func reachable(_ host: String) -> String {
        switch host {
        case "", "*", "0.0.0.0": "127.0.0.1"
        case "::": "::1"
        default: host
        }
    }

    static func address(_ host: String, _ port: Int) -> String {
        host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    static func absolute(_ folder: String?) -> String? {
        guard let folder else { return nil }
        guard let path = realpath(folder, nil) else { return folder }
        defer { free(path) }
        return String(cString: path)
    }
}
