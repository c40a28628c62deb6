import HearthModel

/// Whose word is taken for who somebody is: `auth` of `hearth.json`.
public struct IdentityConfiguration: Sendable, Equatable {
    /// Somebody else's tokens.
    public struct Issuer: Sendable, Equatable {
        /// What `iss` must be.
        public var issuer: String
        /// What must be among `aud`.
        public var audience: String
        /// A file, or an address that begins with `https://` or `http://`.
        public var keys: String

        public init(issuer: String, audience: String, keys: String) {
            self.issuer = issuer
            self.audience = audience
            self.keys = keys
        }

        /// Firebase's own ID tokens of a project. Source: "Verify ID tokens using a third-party JWT library" of Firebase's
        /// documentation.
        public static func firebase(_ project: String) -> Issuer {
            Issuer(
                issuer: "https://securetoken.google.com/\(project)", audience: project,
                keys: "https://www.googleapis.com/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com")
        }
    }

    /// A key whose tokens are one's own.
    public struct Key: Sendable, Equatable {
        /// What `kid` must be, when a token has one.
        public var id: String?
        public var key: SigningKey
        /// What `iss` must be.
        public var issuer: String

        public init(id: String?, key: SigningKey, issuer: String = Key.issuerDefault) {
            self.id = id
            self.key = key
            self.issuer = issuer
        }

        /// Of `hearth token mint`.
        public static let issuerDefault = "hearth"
    }

    /// A secret that makes whoever has it an administrator.
    public struct Credential: Sendable, Equatable {
        public var name: String
        public var secret: String
        public var isReadOnly: Bool
        /// Nil for all.
        public var project: String?

        public init(name: String, secret: String, isReadOnly: Bool = false, project: String? = nil) {
            self.name = name
            self.secret = secret
            self.isReadOnly = isReadOnly
            self.project = project
        }

        /// Shorter ones could be guessed.
        public static let secretBytesMin = 24
    }

    public var issuers: [Issuer] = []
    public var keys: [Key] = []
    public var credentials: [Credential] = []

    public init() {}

    public var isEmpty: Bool { issuers.isEmpty && keys.isEmpty && credentials.isEmpty }
}
