import HearthModel
import HearthRules
import HearthWire

/// The source of a ruleset as it was sent. Its file is returned exactly so: Firebase's tools compare it with theirs, and upload
/// nothing when both are equal.
struct RulesetSource: Sendable, Equatable {
    var fileName: String
    var content: String
    /// Of the file; base64, of no meaning here.
    var fingerprint: String?
    /// `FIREBASE_RULES`, or whatever was sent.
    var language: String?

    init(fileName: String, content: String) {
        self.fileName = fileName
        self.content = content
    }

    /// - Throws: INVALID_ARGUMENT unless the source has one file of a permitted size.
    init(_ object: RequestObject) throws(Status) {
        let files = try object.list("files") ?? []
        let path = object.path(of: "files")
        guard files.count == 1 else {
            throw .invalidArgument("A source has exactly one file; '\(path)' has \(files.count).")
        }
        let file = try RequestObject(files[0], at: "\(path)[0]", known: ["name", "content", "fingerprint"])
        fileName = try file.string("name") ?? ""
        if fileName.isEmpty || fileName.utf8.count > Limits.rulesNamesBytesMax {
            throw .invalidArgument(
                "The name of a source's file has 1 to \(Limits.rulesNamesBytesMax) bytes; this one has \(fileName.utf8.count)."
            )
        }
        content = try file.string("content") ?? ""
        if content.utf8.count >= RulesLimits.sourceSizeBytesMax {
            throw .invalidArgument(
                "\(fileName) has \(content.utf8.count) bytes; a source has less than \(RulesLimits.sourceSizeBytesMax)."
            )
        }
        fingerprint = try file.string("fingerprint")
        language = try object.string("language")
        for string in [fingerprint, language] where (string?.utf8.count ?? 0) > Limits.rulesNamesBytesMax {
            throw .invalidArgument("A fingerprint and a language have at most \(Limits.rulesNamesBytesMax) bytes.")
        }
    }

    static let members = ["files", "language"]

    /// - Throws: INVALID_ARGUMENT with all errors, each with its position, or when nothing in it is for Firestore.
    func compile() throws(Status) -> Ruleset {
        let compilation = Ruleset.compile(content)
        guard let ruleset = compilation.ruleset else {
            let errors = compilation.issues.filter { $0.severity == .error }
            throw .invalidArgument(
                "\(fileName) does not compile:\n"
                    + errors.map { "[\($0.line):\($0.column)] \($0.description)" }.joined(separator: "\n"))
        }
        guard ruleset.hasFirestore else {
            throw .invalidArgument(
                "\(fileName) [1:1] has no \"service cloud.firestore\": its rules apply to nothing here.")
        }
        return ruleset
    }

    func append(to writer: inout JSONWriter) {
        writer.raw("{\"files\":[{\"name\":")
        writer.string(fileName)
        writer.raw(",\"content\":")
        writer.string(content)
        if let fingerprint {
            writer.raw(",\"fingerprint\":")
            writer.string(fingerprint)
        }
        writer.raw("}]")
        if let language {
            writer.raw(",\"language\":")
            writer.string(language)
        }
        writer.raw("}")
    }
}
