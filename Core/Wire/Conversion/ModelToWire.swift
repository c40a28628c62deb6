import HearthModel

/// The model's writes and queries as messages, for clients and for bundles.
extension WriteMessage {
    package init(_ write: Write) {
        self.init()
        let name = write.document.string
        switch write.operation {
        case .update(let fields, let mask):
            update = DocumentMessage(name: name, fields: fields)
            updateMask = mask.map { DocumentMaskMessage(fieldPaths: $0.map(\.string)) }
        case .delete: delete = name
        case .verify: verify = name
        }
        updateTransforms = write.transforms.map { DocumentTransformMessage.FieldTransform($0) }
        currentDocument = PreconditionMessage(write.precondition)
    }
}

extension DocumentTransformMessage.FieldTransform {
    package init(_ transform: HearthModel.FieldTransform) {
        self.init(fieldPath: transform.path.string)
        switch transform.operation {
        case .requestTime: setToServerValue = .requestTime
        case .increment(let operand): increment = operand
        case .maximum(let operand): maximum = operand
        case .minimum(let operand): minimum = operand
        case .appendMissingElements(let elements): appendMissingElements = elements
        case .removeAllFromArray(let elements): removeAllFromArray = elements
        }
    }
}

extension StructuredQueryMessage {
    /// The query without its parent, which is a separate field of a request.
    package init(_ query: HearthModel.Query) {
        self.init()
        switch query.scope {
        case .collection(let id): from = [CollectionSelector(collectionId: id)]
        case .collectionGroup(let id): from = [CollectionSelector(collectionId: id, allDescendants: true)]
        case .anyCollection: from = []
        case .allDescendants: from = [CollectionSelector(allDescendants: true)]
        }
        `where` = query.filter.map { Filter($0) }
        orderBy = query.orders.map {
            Order(field: FieldReference($0.field), direction: $0.descending ? .descending : .ascending)
        }
        startAt = query.start.map { CursorMessage(values: $0.values, before: $0.before) }
        endAt = query.end.map { CursorMessage(values: $0.values, before: $0.before) }
        offset = Int32(clamping: query.offset)
        limit = query.limit.map { Int32(clamping: $0) }
        select = query.projection.map { Projection($0) }
        findNearest = query.findNearest.map { FindNearest($0) }
    }
}

extension StructuredQueryMessage.FieldReference {
    package init(_ path: FieldPath) {
        self.init(fieldPath: path.string)
    }
}

extension StructuredQueryMessage.Projection {
    /// An empty list would mean all fields: a names-only query selects `__name__`.
    package init(_ paths: [FieldPath]) {
        self.init(fields: (paths.isEmpty ? [.documentName] : paths).map { StructuredQueryMessage.FieldReference($0) })
    }
}

extension StructuredQueryMessage.Filter {
    package init(_ filter: HearthModel.Filter) {
        self.init()
        switch filter {
        case .and(let members):
            compositeFilter = StructuredQueryMessage.CompositeFilter(op: .and, filters: members.map { Self($0) })
        case .or(let members):
            compositeFilter = StructuredQueryMessage.CompositeFilter(op: .or, filters: members.map { Self($0) })
        case .field(let path, let op, let value):
            fieldFilter = StructuredQueryMessage.FieldFilter(
                field: StructuredQueryMessage.FieldReference(path), op: .init(rawValue: Int32(op.rawValue)),
                value: value)
        case .unary(let path, let op):
            unaryFilter = StructuredQueryMessage.UnaryFilter(
                op: .init(rawValue: Int32(op.rawValue)), field: StructuredQueryMessage.FieldReference(path))
        }
    }
}

extension StructuredQueryMessage.FindNearest {
    package init(_ findNearest: HearthModel.Query.FindNearest) {
        self.init(
            vectorField: StructuredQueryMessage.FieldReference(findNearest.field),
            queryVector: .vector(findNearest.vector),
            distanceMeasure: .init(rawValue: Int32(findNearest.measure.rawValue)),
            limit: Int32(clamping: findNearest.limit), distanceResultField: findNearest.resultField?.string ?? "",
            distanceThreshold: findNearest.threshold)
    }
}
