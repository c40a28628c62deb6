import HearthModel

extension Precondition {
    func holds(for document: ClientDocument) -> Bool {
        switch self {
        case .none: true
        case .exists(let exists): document.isFound == exists
        case .updateTime(let time): document.isFound && document.version == time
        }
    }
}

extension Mutation {
    /// Applies the mutation to a document before the server has answered.
    /// - Parameters:
    ///   - changed: the fields that differ from the remote document; nil when the whole document was replaced.
    /// - Returns: `changed` with the fields that this mutation changes.
    func applyLocally(
        to document: inout ClientDocument, changed: Set<FieldPath>?, localWriteTime: Timestamp
    ) -> Set<FieldPath>? {
        guard precondition.holds(for: document) else { return changed }
        switch kind {
        case .set(let value):
            let results = localTransformResults(from: value, previous: document.fields, localWriteTime)
            document.becomeLocal(.found, value.applying(results))
            return nil
        case .patch(let value, let mask):
            let results = localTransformResults(
                from: document.fields, previous: document.fields, localWriteTime)
            var fields = document.fields
            fields.merge(value, mask: mask)
            document.becomeLocal(.found, fields.applying(results))
            return changed.map { $0.union(mask).union(transforms.map(\.path)) }
        case .delete:
            document.becomeLocal(.missing, MapValue())
            return nil
        case .verify: return changed
        }
    }

    /// Applies a mutation that the server accepted to the remote document.
    /// - Throws: `INTERNAL` when the answer does not match the mutation.
    func applyAcknowledged(to document: inout ClientDocument, _ result: MutationResult) throws(Status) {
        switch kind {
        case .set(let value):
            let results = try serverTransformResults(from: value, result)
            document.becomeCommitted(.found, value.applying(results), result.version)
        case .patch(let value, let mask):
            guard precondition.holds(for: document) else {
                document.becomeCommitted(.unknown, MapValue(), result.version)
                return
            }
            let results = try serverTransformResults(from: document.fields, result)
            var fields = document.fields
            fields.merge(value, mask: mask)
            document.becomeCommitted(.found, fields.applying(results), result.version)
        case .delete: document.becomeCommitted(.missing, MapValue(), result.version)
        case .verify: return
        }
    }

    /// The base values of transforms that are not idempotent. With them, an update from the server that already
    /// contains the effect does not make the value flicker. nil when there are none: a set starts from nothing.
    func base(for document: ClientDocument) -> Mutation? {
        if case .set = kind { return nil }
        var value = MapValue()
        var mask: [FieldPath] = []
        for transform in transforms {
            guard case .increment = transform.operation else { continue }
            switch document.fields[path: transform.path] {
            case .integer(let number)?: value.set(transform.path, .integer(number))
            case .double(let number)?: value.set(transform.path, .double(number))
            default: value.set(transform.path, .integer(0))
            }
            mask.append(transform.path)
        }
        if mask.isEmpty { return nil }
        return Mutation(key: key, kind: .patch(value, mask: mask), precondition: .exists(true))
    }

    // MARK: Transforms

    /// - Parameters:
    ///   - fields: what the transforms apply to: the fields of a set, which replaces the document, or those of the document
    ///     that is patched.
    ///   - previousFields: the fields before the mutation, for the previous value of a server timestamp.
    private func localTransformResults(
        from fields: MapValue, previous previousFields: MapValue, _ localWriteTime: Timestamp
    ) -> [(path: FieldPath, value: Value)] {
        transforms.map { transform in
            if case .requestTime = transform.operation {
                let pending = PendingServerTimestamp(
                    localWriteTime: localWriteTime, previousValue: previousFields[path: transform.path])
                return (transform.path, pending.value)
            }
            let value = fields[path: transform.path]
            return (transform.path, transform.apply(to: value, requestTime: localWriteTime).value)
        }
    }

    private func serverTransformResults(
        from fields: MapValue, _ result: MutationResult
    ) throws(Status) -> [(path: FieldPath, value: Value)] {
        guard result.transformResults.count == transforms.count else {
            throw .internalError(
                "The server answered \(result.transformResults.count) transform results to \(transforms.count) "
                    + "transforms of \(key.string).")
        }
        return zip(transforms, result.transformResults).map { transform, result in
            switch transform.operation {
            case .appendMissingElements, .removeAllFromArray:
                // The server answers null: the result is computed from the fields.
                let value = fields[path: transform.path]
                return (transform.path, transform.apply(to: value, requestTime: .none).value)
            case .requestTime, .increment, .maximum, .minimum: return (transform.path, result)
            }
        }
    }
}

extension MapValue {
    fileprivate func applying(_ results: [(path: FieldPath, value: Value)]) -> MapValue {
        var fields = self
        for (path, value) in results { fields.set(path, value) }
        return fields
    }
}

extension ClientDocument {
    fileprivate mutating func becomeLocal(_ kind: Kind, _ fields: MapValue) {
        self.kind = kind
        self.fields = fields
        version = .none
        state = .hasLocalMutations
    }

    fileprivate mutating func becomeCommitted(_ kind: Kind, _ fields: MapValue, _ version: Timestamp) {
        self.kind = kind
        self.fields = fields
        self.version = version
        state = .hasCommittedMutations
    }
}

extension MutationBatch {
    /// Applies those mutations of the batch that affect the document, and returns the fields changed.
    func applyLocally(to document: inout ClientDocument, changed: Set<FieldPath>?) -> Set<FieldPath>? {
        var changed = changed
        for mutation in baseMutations where mutation.key == document.key {
            changed = mutation.applyLocally(to: &document, changed: changed, localWriteTime: localWriteTime)
        }
        for mutation in mutations where mutation.key == document.key {
            changed = mutation.applyLocally(to: &document, changed: changed, localWriteTime: localWriteTime)
        }
        return changed
    }

    /// - Parameter results: one for each mutation.
    func applyAcknowledged(to document: inout ClientDocument, _ results: [MutationResult]) throws(Status) {
        for (mutation, result) in zip(mutations, results) where mutation.key == document.key {
            try mutation.applyAcknowledged(to: &document, result)
        }
    }
}
