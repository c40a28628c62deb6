import HearthToolSupport
import Glibc
import HearthModel
import HearthHost

/// `hearth token`
enum TokenCommand {
    static let command = ToolCommand(
        name: "token", summary: "Make tokens that name a user.", options: options, verbs: ["mint"],
        help: { help() },
        run: { arguments throws(ToolFailure) in try run(arguments) })

    private static let options = [
        Option("uid", "ID", "The user's id: request.auth.uid of security rules."),
        Option("claim", "NAME=VALUE", "A further claim; VALUE is JSON or a string. Several are joined by commas."),
        Option("ttl", "TIME", "The token's lifetime: 90s, 15m, 1h, 30d. Default 1h."),
        Option("secret", "FILE", "The secret of a key of hearth.json, for HS256."),
        Option("key", "FILE", "A private key (PEM) of RSA or P-256, whose public key is in hearth.json."),
        Option("key-id", "ID", "The key's id in hearth.json."),
        Option("issuer", "STRING", "The issuer in hearth.json. Default hearth."),
        Option("audience", "STRING", "The audience in hearth.json."),
    ]

    private static func help() -> String {
        """
        Usage: hearth token mint --uid ID (--secret FILE | --key FILE) [options]

        Prints a token that a server believes which has the key under "auth" in hearth.json:

            {"auth": {"keys": [{"secretFile": "token.secret"}]}}

        \(OptionHelp.string(options))

        For a server with --emulator no key is needed: an unsigned token does.
        """
    }

    private static func run(_ words: [String]) throws(ToolFailure) {
        let parsed = try ParsedOptions(words, options: options, argumentsMax: 1)
        guard parsed.arguments == ["mint"] else { throw .usage("Expected `hearth token mint`.") }
        guard let uid = parsed.string("uid"), !uid.isEmpty else { throw .usage("--uid is missing.") }
        let seconds = try seconds(parsed.string("ttl") ?? "1h")
        do throws(Status) {
            let key: SigningKey
            if let file = parsed.string("secret") {
                key = try .secret(try IdentityConfiguration.secret(file))
            } else if let file = parsed.string("key") {
                key = try .pem(try IdentityConfiguration.bytes(file), isPrivate: true)
            } else {
                throw .invalidArgument("Either --secret or --key is needed.")
            }
            Output.line(
                try TokenMint.mint(
                    key, keyID: parsed.string("key-id"),
                    issuer: parsed.string("issuer") ?? IdentityConfiguration.Key.issuerDefault, subject: uid,
                    audience: parsed.string("audience"), claims: try claims(parsed.string("claim")),
                    issuedAt: Int64(time(nil)), seconds: seconds))
        } catch {
            throw .usage(error.message)
        }
    }

    private static func seconds(_ string: String) throws(ToolFailure) -> Int64 {
        let units: [Character: Int64] = ["s": 1, "m": 60, "h": 3600, "d": 86_400]
        guard let unit = string.last, let factor = units[unit], let number = Int64(string.dropLast()), number > 0,
            number < 1_000_000
        else {
            throw .usage("--ttl expects a time such as 90s, 15m, 1h or 30d, not \"\(string)\".")
        }
        return number * factor
    }

    private static func claims(_ string: String?) throws(Status) -> [(name: String, value: Value)] {
        try (string ?? "").split(separator: ",").map { part throws(Status) in
            let words = part.split(separator: "=", maxSplits: 1).map(String.init)
            guard words.count == 2 else { throw .invalidArgument("--claim expects NAME=VALUE, not \"\(part)\".") }
            return (words[0], TokenMint.claim(words[1]))
        }
    }
}
