import HearthModel

/// Validates received writes and converts them to the model. Messages have the service's wording, where it is known.
extension WriteMessage {
    /// - Parameter database: the request's database, which must contain every name.
    /// - Throws: INVALID_ARGUMENT for a malformed name, value, mask, transform or precondition.
    package func write(database: DatabaseName) throws(Status) -> Write {
        let operations = [update != nil, delete != nil, verify != nil, transform != nil].count { $0 }
        if operations > 1 { throw .invalidArgument("A write must have exactly one operation.") }
        if let update { return try write(update, in: database) }
        if let delete { return try write(delete: delete, in: database) }
        if let verify { return try write(verify: verify, in: database) }
        if let transform { return try write(transform, in: database) }
        throw .invalidArgument("empty write operation")
    }

    /// The writes of one commit.
    /// - Throws: INVALID_ARGUMENT as `write(database:)`, and when one document has too many transforms.
    package static func writes(_ messages: [WriteMessage], database: DatabaseName) throws(Status) -> [Write] {
        var writes: [Write] = []
        writes.reserveCapacity(messages.count)
        var transforms: [ResourcePath: Int] = [:]
        for message in messages {
            let write = try message.write(database: database)
            if !write.transforms.isEmpty {
                transforms[write.document.path, default: 0] += write.transforms.count
                if transforms[write.document.path, default: 0] > Limits.transformsPerDocumentMax {
                    throw .invalidArgument(
                        "cannot have more than \(Limits.transformsPerDocumentMax) field transforms on a single document"
                    )
                }
            }
            writes.append(write)
        }
        return writes
    }

    private func write(_ update: DocumentMessage, in database: DatabaseName) throws(Status) -> Write {
        let document = try ResourceName(document: update.name, in: database)
        try ValueValidation.validate(update.fields)
        return Write(
            document: document, operation: .update(fields: update.fields, mask: try updateMask?.writePaths()),
            transforms: try DocumentTransformMessage.transforms(updateTransforms),
            precondition: try precondition())
    }

    private func write(delete name: String, in database: DatabaseName) throws(Status) -> Write {
        try refuseUpdateParts("delete")
        return Write(
            document: try ResourceName(document: name, in: database), operation: .delete,
            precondition: try precondition())
    }

    private func write(verify name: String, in database: DatabaseName) throws(Status) -> Write {
        try refuseUpdateParts("verify")
        let precondition = try precondition()
        if precondition == .none { throw .invalidArgument("a verify must contain a precondition") }
        return Write(
            document: try ResourceName(document: name, in: database), operation: .verify, precondition: precondition)
    }

    /// The older form of transforms: an update that changes no field, and the transforms.
    private func write(_ transform: DocumentTransformMessage, in database: DatabaseName) throws(Status) -> Write {
        try refuseUpdateParts("transform")
        let document = try ResourceName(document: transform.document, in: database)
        if transform.fieldTransforms.isEmpty {
            throw .invalidArgument("The list of FieldTransform must not be empty.")
        }
        return Write(
            document: document, operation: .update(fields: MapValue(), mask: []),
            transforms: try DocumentTransformMessage.transforms(transform.fieldTransforms),
            precondition: try precondition())
    }

    private func refuseUpdateParts(_ operation: String) throws(Status) {
        if updateMask != nil { throw .invalidArgument("a \(operation) must not specify a document mask.") }
        if !updateTransforms.isEmpty { throw .invalidArgument("a \(operation) must not specify a update transform.") }
    }

    private func precondition() throws(Status) -> Precondition {
        try currentDocument?.precondition() ?? .none
    }
}

extension PreconditionMessage {
    /// - Throws: INVALID_ARGUMENT when the update time is finer than a microsecond or out of range.
    package func precondition() throws(Status) -> Precondition {
        if let exists { return .exists(exists) }
        if let updateTime {
            let time = try updateTime.preciseTimestamp()
            if time.microseconds < 0 { throw .invalidArgument("Only timestamps past epoch are supported.") }
            return .updateTime(time)
        }
        return .none
    }

    package init?(_ precondition: Precondition) {
        switch precondition {
        case .none: return nil
        case .exists(let exists): self.init(exists: exists)
        case .updateTime(let time): self.init(updateTime: TimestampMessage(time))
        }
    }
}

extension DocumentMaskMessage {
    /// The paths of an update mask, which must not contain the document's name.
    /// - Throws: INVALID_ARGUMENT for a malformed or reserved path.
    func writePaths() throws(Status) -> [FieldPath] {
        try fieldPaths.mapPaths { string throws(Status) in try FieldPath(writable: string) }
    }

    /// The paths of a mask that limits a response. The document's name is always returned and is not one of them.
    /// - Throws: INVALID_ARGUMENT for a malformed or reserved path.
    package func readPaths() throws(Status) -> [FieldPath] {
        try fieldPaths.mapPaths { string throws(Status) in try FieldPath(parsing: string) }.filter {
            !$0.isDocumentName
        }
    }

    /// The projection of stored fields by this mask.
    package func projection() throws(Status) -> Projection { Projection(try readPaths()) }
}

extension DocumentTransformMessage {
    /// - Throws: INVALID_ARGUMENT for a malformed transform, or for one on a path and another one below it.
    package static func transforms(_ messages: [FieldTransform]) throws(Status) -> [HearthModel.FieldTransform] {
        if messages.isEmpty { return [] }
        var transforms: [HearthModel.FieldTransform] = []
        transforms.reserveCapacity(messages.count)
        for message in messages { transforms.append(try message.transform()) }
        try refuseNested(transforms.map { $0.path })
        return transforms
    }

    /// After sorting, a path directly precedes its descendants.
    private static func refuseNested(_ paths: [FieldPath]) throws(Status) {
        let sorted = paths.sorted()
        for (path, next) in zip(sorted, sorted.dropFirst())
        where path.segments.count < next.segments.count && path.isPrefix(of: next) {
            throw .invalidArgument("Cannot transform property \(path.string) and its nested property at the same time.")
        }
    }
}

extension DocumentTransformMessage.FieldTransform {
    /// - Throws: INVALID_ARGUMENT for a malformed path or operand, or when no operation is set.
    package func transform() throws(Status) -> HearthModel.FieldTransform {
        let path = try FieldPath(writable: fieldPath)
        return HearthModel.FieldTransform(path: path, operation: try operation(on: path))
    }

    private func operation(on path: FieldPath) throws(Status) -> HearthModel.FieldTransform.Operation {
        if let setToServerValue {
            guard setToServerValue == .requestTime else {
                throw .invalidArgument("ServerValue type must be specified for set_to_server_value transformation.")
            }
            return .requestTime
        }
        if let increment { return .increment(try Self.number(increment)) }
        if let maximum { return .maximum(try Self.number(maximum)) }
        if let minimum { return .minimum(try Self.number(minimum)) }
        if let elements = appendMissingElements { return .appendMissingElements(try Self.elements(elements, of: path)) }
        if let elements = removeAllFromArray { return .removeAllFromArray(try Self.elements(elements, of: path)) }
        throw .invalidArgument("Operation type must be specified for field transformation.")
    }

    private static func number(_ operand: Value) throws(Status) -> Value {
        switch operand {
        case .integer, .double: return operand
        default: throw .invalidArgument("Input must be int64 or double.")
        }
    }

    /// The operand becomes part of an array, so the rules of array elements apply to it.
    private static func elements(_ operand: [Value], of path: FieldPath) throws(Status) -> [Value] {
        try ValueValidation.validate(.array(operand), of: path.string)
        return operand
    }
}

// MARK: Names and paths

extension ResourceName {
    /// Parses the name of a document of a database.
    /// - Throws: INVALID_ARGUMENT when it is malformed or lies in another database.
    package init(document string: String, in database: DatabaseName) throws(Status) {
        try self.init(document: string)
        try require(database)
    }

    /// Parses the name of a document of a database that a value refers to.
    /// - Throws: INVALID_ARGUMENT when it is malformed or lies in another database.
    package init(reference string: String, in database: DatabaseName) throws(Status) {
        try self.init(reference: string)
        try require(database)
    }

    /// Parses a parent, the root or a document, of a database.
    package init(parent string: String, in database: DatabaseName) throws(Status) {
        try self.init(parent: string)
        try require(database)
    }

    private func require(_ database: DatabaseName) throws(Status) {
        guard UTF8Order.equal(self.database.project, database.project),
            UTF8Order.equal(self.database.database, database.database)
        else {
            throw .invalidArgument(
                "The request was for database '\(database.string)' but was attempting to access database "
                    + "'\(self.database.string)'")
        }
    }
}

extension FieldPath {
    /// Parses a path to a field that is written; the document's name is not allowed.
    init(writable string: String) throws(Status) {
        try self.init(parsing: string)
        if isDocumentName { throw .invalidArgument("Invalid reserved name in field path \(self.string)") }
    }
}

extension [String] {
    /// `map` for parsers that throw `Status`.
    func mapPaths(_ parse: (String) throws(Status) -> FieldPath) throws(Status) -> [FieldPath] {
        var paths: [FieldPath] = []
        paths.reserveCapacity(count)
        for string in self { paths.append(try parse(string)) }
        return paths
    }
}
