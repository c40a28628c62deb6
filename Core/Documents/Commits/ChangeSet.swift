/// What a commit did.
package struct ChangeSet: Sendable {
    package var version: Int64
    package var changes: [Change]

    var sizeBytes: Int {
        changes.reduce(64) { $0 + $1.key.count + ($1.before?.fields.count ?? 0) + ($1.after?.fields.count ?? 0) + 96 }
    }
}
