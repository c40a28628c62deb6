import HearthModel

extension IdentityConfiguration {
    /// Reads `auth` of `hearth.json`:
    ///
    ///     {
    ///       "firebaseProject": "my-app",
    ///       "issuers": [{"issuer": "https://id.example.com", "audience": "client-1", "jwks": "https://id.example.com/jwks.json",
    ///                    "project": "my-app"}],
    ///       "keys": [{"id": "1", "secretFile": "token.secret"}, {"publicKeyFile": "token.pem", "issuer": "my-backend"}],
    ///       "credentials": [{"name": "backup", "secretFile": "backup.secret", "scope": "read-only", "project": "my-app"}]
    ///     }
    ///
    /// - Parameter folder: that of `hearth.json`, to which the files are relative.
    /// - Throws: INVALID_ARGUMENT or FAILED_PRECONDITION, with file, line and member.
    package init(_ value: ConfigurationValue, folder: String) throws(Status) {
        self.init()
        func path(_ name: String) -> String {
            name.hasPrefix("/") || folder.isEmpty || folder == "." ? name : "\(folder)/\(name)"
        }
        try Self.check(value, ["firebaseProject", "issuers", "keys", "credentials"])
        if let project = try value.member("firebaseProject")?.string() { issuers.append(.firebase(project)) }
        for entry in try value.member("issuers")?.elements() ?? [] {
            try Self.check(entry, ["issuer", "audience", "jwks", "project"])
            let keys = try Self.required(entry, "jwks")
            issuers.append(
                Issuer(
                    issuer: try Self.required(entry, "issuer"), audience: try Self.required(entry, "audience"),
                    keys: keys.contains("://") ? keys : path(keys), project: try entry.member("project")?.string()))
        }
        for entry in try value.member("keys")?.elements() ?? [] {
            try Self.check(entry, ["id", "secretFile", "publicKeyFile", "issuer", "project"])
            let key: SigningKey
            if let file = try entry.member("secretFile")?.string() {
                key = try Self.located(entry) { () throws(Status) in try .secret(try Self.secret(path(file))) }
            } else {
                let file = try Self.required(entry, "publicKeyFile")
                key = try Self.located(entry) { () throws(Status) in try .pem(try Self.bytes(path(file))) }
            }
            keys.append(
                Key(
                    id: try entry.member("id")?.string(), key: key,
                    issuer: try entry.member("issuer")?.string() ?? Key.issuerDefault,
                    project: try entry.member("project")?.string()))
        }
        for entry in try value.member("credentials")?.elements() ?? [] {
            // A "scope" that is misspelt would make an owner.
            try Self.check(entry, ["name", "secretFile", "scope", "project"])
            let file = path(try Self.required(entry, "secretFile"))
            let secret = String(decoding: try Self.secret(file), as: UTF8.self)
            if secret.utf8.count < Credential.secretBytesMin {
                throw entry.failure("A credential has at least \(Credential.secretBytesMin) bytes.")
            }
            let scope = try entry.member("scope")?.string() ?? "owner"
            guard scope == "owner" || scope == "read-only" else {
                throw entry.failure("A scope is \"owner\" or \"read-only\".")
            }
            credentials.append(
                Credential(
                    name: try Self.required(entry, "name"), secret: secret, isReadOnly: scope == "read-only",
                    project: try entry.member("project")?.string()))
        }
    }

    private static func check(_ value: ConfigurationValue, _ known: [String]) throws(Status) {
        for member in try value.members() where !known.contains(member.name) {
            throw member.value.failure("Unknown setting\(Spelling.hint(for: member.name, among: known))")
        }
    }

    private static func required(_ entry: ConfigurationValue, _ name: String) throws(Status) -> String {
        guard let value = try entry.member(name) else { throw entry.failure("\"\(name)\" is missing.") }
        return try value.string()
    }

    /// Adds the location in the configuration to the error of an unusable key.
    private static func located<Result>(
        _ entry: ConfigurationValue, _ body: () throws(Status) -> Result
    ) throws(Status) -> Result {
        do throws(Status) {
            return try body()
        } catch {
            throw entry.failure(error.message)
        }
    }

    /// - Throws: FAILED_PRECONDITION when the file does not exist.
    package static func bytes(_ path: String) throws(Status) -> [UInt8] {
        guard let bytes = try TextFile.read(path) else { throw .failedPrecondition("\(path) is not there.") }
        return bytes
    }

    /// A file's content without the line end that editors add.
    package static func secret(_ path: String) throws(Status) -> [UInt8] {
        var bytes = try bytes(path)
        while let last = bytes.last, last == UInt8(ascii: "\n") || last == UInt8(ascii: "\r") { bytes.removeLast() }
        return bytes
    }
}
