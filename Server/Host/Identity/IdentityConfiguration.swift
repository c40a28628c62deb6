import HearthModel

/// The trusted issuers, keys and credentials: `auth` of `hearth.json`.
package struct IdentityConfiguration: Sendable, Equatable {
    /// An external issuer of tokens.
    package struct Issuer: Sendable, Equatable {
        /// The required value of `iss`.
        package var issuer: String
        /// A required member of `aud`.
        package var audience: String
        /// A file, or an address that begins with `https://` or `http://`.
        package var keys: String
        /// The project that its tokens are for; nil for the one that the audience names.
        package var project: String?

        package init(issuer: String, audience: String, keys: String, project: String? = nil) {
            self.issuer = issuer
            self.audience = audience
            self.keys = keys
            self.project = project
        }

        /// The project that its tokens are for.
        package var tokenProject: String { project ?? audience }

        /// Firebase's own ID tokens of a project. Source: "Verify ID tokens using a third-party JWT library" in
        /// Firebase's documentation.
        package static func firebase(_ project: String) -> Issuer {
            Issuer(
                issuer: "https://securetoken.google.com/\(project)", audience: project,
                keys: "https://www.googleapis.com/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com")
        }
    }

    /// A key for tokens of the operator.
    package struct Key: Sendable, Equatable {
        /// The required value of `kid`, when a token has one.
        package var id: String?
        package var key: SigningKey
        /// The required value of `iss`.
        package var issuer: String
        /// The project that its tokens are for; nil for those that a token's audience names.
        package var project: String?

        package init(id: String?, key: SigningKey, issuer: String = Key.issuerDefault, project: String? = nil) {
            self.id = id
            self.key = key
            self.issuer = issuer
            self.project = project
        }

        /// The issuer of `hearth token mint`.
        package static let issuerDefault = "hearth"
    }

    /// A secret that makes its bearer an administrator.
    package struct Credential: Sendable, Equatable {
        package var name: String
        package var secret: String
        package var isReadOnly: Bool
        /// Nil for all.
        package var project: String?

        package init(name: String, secret: String, isReadOnly: Bool = false, project: String? = nil) {
            self.name = name
            self.secret = secret
            self.isReadOnly = isReadOnly
            self.project = project
        }

        /// Shorter ones could be guessed.
        static let secretBytesMin = 24
    }

    package var issuers: [Issuer] = []
    package var keys: [Key] = []
    package var credentials: [Credential] = []
    /// Whether a user of one project is a user of all others of the server.
    package var sharesSignIn = false

    package init() {}

    package var isEmpty: Bool { issuers.isEmpty && keys.isEmpty && credentials.isEmpty }
}
