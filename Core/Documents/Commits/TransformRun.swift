import HearthModel

/// Applies the transforms of one write to a document's fields, in order. Several operations on one array read its
/// stored elements once.
struct TransformRun {
    private struct Edited {
        let stored: Value?
        var editor: ArrayEditor
    }

    /// The assumed cost of reading an element of an array.
    private static let elementWorkBytes = 16

    private let requestTime: Timestamp
    /// Whether arrays are edited: not for a single operation.
    private let edits: Bool
    /// Arrays with operations that are not yet in the fields.
    private var edited: [FieldPath: Edited] = [:]
    private(set) var results: [Value] = []
    /// Whether all operations have left the fields unchanged.
    private(set) var isSame = true
    /// Bytes of elements that were read.
    private(set) var workBytes = 0

    init(_ transforms: [FieldTransform], requestTime: Timestamp) {
        self.requestTime = requestTime
        edits = transforms.count > 1 && transforms.count(where: \.isOnArray) > 1
        results.reserveCapacity(transforms.count)
    }

    /// - Throws: INVALID_ARGUMENT when a value becomes too deep.
    mutating func apply(_ transform: FieldTransform, to tree: inout MapValue) throws(Status) {
        switch transform.operation {
        case .appendMissingElements(let elements) where edits:
            try begin(transform.path, &tree)
            edited[transform.path]?.editor.append(elements)
            note(elements)
        case .removeAllFromArray(let elements) where edits:
            try begin(transform.path, &tree)
            edited[transform.path]?.editor.remove(elements)
            note(elements)
        default:
            try finish(&tree) { $0.isPrefix(of: transform.path) || transform.path.isPrefix(of: $0) }
            let stored = tree[path: transform.path]
            if case .array(let elements)? = stored { workBytes += elements.count * Self.elementWorkBytes }
            let (value, result) = transform.apply(to: stored, requestTime: requestTime)
            try set(value, at: transform.path, before: stored, &tree)
            results.append(result)
        }
    }

    private mutating func begin(_ path: FieldPath, _ tree: inout MapValue) throws(Status) {
        if edited[path] != nil { return }
        try finish(&tree) { $0.isPrefix(of: path) || path.isPrefix(of: $0) }
        let stored = tree[path: path]
        var elements: [Value] = []
        if case .array(let found)? = stored { elements = found }
        workBytes += elements.count * Self.elementWorkBytes
        edited[path] = Edited(stored: stored, editor: ArrayEditor(elements))
    }

    private mutating func note(_ elements: [Value]) {
        workBytes += elements.count * Self.elementWorkBytes
        results.append(.null)
    }

    private mutating func set(
        _ value: Value, at path: FieldPath, before stored: Value?, _ tree: inout MapValue
    ) throws(Status) {
        try ValueValidation.validateDepth(of: value, at: path)
        isSame = isSame && stored == value
        tree.set(path, value)
    }

    /// Writes arrays back into the fields.
    /// - Parameter isWanted: selects the arrays.
    mutating func finish(_ tree: inout MapValue, _ isWanted: (FieldPath) -> Bool = { _ in true }) throws(Status) {
        if edited.isEmpty { return }
        for path in edited.keys.filter(isWanted).sorted() {
            guard let array = edited.removeValue(forKey: path) else { continue }
            try set(.array(array.editor.elements), at: path, before: array.stored, &tree)
        }
    }
}

extension FieldTransform {
    /// Whether it reads all elements of a stored array.
    var isOnArray: Bool {
        switch operation {
        case .appendMissingElements, .removeAllFromArray: true
        case .requestTime, .increment, .maximum, .minimum: false
        }
    }
}
