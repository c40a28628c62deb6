import HearthModel

extension Mutation {
    /// The single mutation that makes the local document from the remote one; nil when there is no local change.
    /// - Parameter changed: the fields that differ from the remote document; nil when the whole document was replaced.
    static func overlay(for document: ClientDocument, changed: Set<FieldPath>?) -> Mutation? {
        guard document.hasLocalMutations else { return nil }
        guard let changed else {
            return Mutation(key: document.key, kind: document.isFound ? .set(document.fields) : .delete)
        }
        var value = MapValue()
        var mask: Set<FieldPath> = []
        for path in changed {
            var path = path
            var present = document.fields[path: path]
            if present == nil, path.segments.count > 1 {
                // A map that a nested write created remains, even when the write below it was a deletion.
                path = FieldPath(segments: path.segments.dropLast())
                present = document.fields[path: path]
            }
            guard mask.insert(path).inserted else { continue }
            if let present { value.set(path, present) }
        }
        return Mutation(key: document.key, kind: .patch(value, mask: mask.sorted()))
    }
}
