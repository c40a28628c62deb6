import CBuild
import HearthModel

extension HearthVersion {
    /// The first digits of the commit that a release was built from, with `-dirty` when the sources had been changed; nil in a
    /// program that was built in another way.
    package static let commit: String? = {
        let commit = String(cString: hearth_build_commit())
        return commit.isEmpty ? nil : commit
    }()

    /// `0.1.0 (abcdef123456)`, or the version alone.
    package static let withCommit = string + (commit.map { " (\($0))" } ?? "")
}
