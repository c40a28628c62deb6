import HearthHost
import HearthBundle
import HearthModel
import HearthWire

/// A query of a definition: conditions in the form of Firebase's bundle builder, or the REST API's structured query.
enum BundleQueryCoding {
    private static let members = [
        "collection", "collectionGroup", "conditions", "parent", "structuredQuery", "limitType",
    ]

    /// - Throws: INVALID_ARGUMENT, with file, line and member.
    static func query(
        _ value: ConfigurationValue, name: String, database: DatabaseName
    ) throws(Status) -> BundleDefinition.NamedQuery {
        for member in try value.members() where !members.contains(member.name) {
            throw member.value.failure("Unknown setting\(Spelling.hint(for: member.name, among: members))")
        }
        if let structured = try value.member("structuredQuery") {
            return try structuredQuery(structured, value, name: name, database: database)
        }
        var builder = try start(value, database)
        for condition in try value.member("conditions")?.elements() ?? [] { try builder.add(condition) }
        return try value.located { () throws(Status) in try builder.query(name: name) }
    }

    private static func structuredQuery(
        _ structured: ConfigurationValue, _ value: ConfigurationValue, name: String, database: DatabaseName
    ) throws(Status) -> BundleDefinition.NamedQuery {
        for other in ["collection", "collectionGroup", "conditions"] {
            if let wrong = try value.member(other) { throw wrong.failure("This excludes structuredQuery.") }
        }
        let parent = try parent(value, database)
        let limitType: BundleQuery.LimitType
        switch try value.member("limitType")?.string() {
        case nil, "FIRST"?: limitType = .first
        case "LAST"?: limitType = .last
        case _?: throw value.failure("limitType is FIRST or LAST.")
        }
        return try structured.located { () throws(Status) in
            let message = try StructuredQueryMessage(json: structured.json)
            return try BundleDefinition.NamedQuery(
                name: name, parent: parent, message: message, limitType: limitType)
        }
    }

    private static func parent(_ value: ConfigurationValue, _ database: DatabaseName) throws(Status) -> ResourceName {
        guard let member = try value.member("parent") else {
            return ResourceName(database: database, path: ResourcePath())
        }
        let path = try member.string()
        return try member.located { () throws(Status) in
            try ResourceName(parent: path.isEmpty ? database.documentsRoot : "\(database.documentsRoot)/\(path)")
        }
    }

    private static func start(_ value: ConfigurationValue, _ database: DatabaseName) throws(Status) -> Builder {
        if let group = try value.member("collectionGroup") {
            return Builder(
                parent: try parent(value, database), collectionID: try group.string(), isGroup: true)
        }
        guard let collection = try value.member("collection") else {
            throw value.failure("A query needs \"collection\", \"collectionGroup\" or \"structuredQuery\".")
        }
        if let wrong = try value.member("parent") {
            throw wrong.failure("A collection's path already contains its parent.")
        }
        let path = try collection.string()
        let name = try collection.located { () throws(Status) in
            try ResourceName(parsing: "\(database.documentsRoot)/\(path)")
        }
        guard name.path.isCollection, let id = name.path.segments.last else {
            throw collection.failure("\"\(path)\" is not the path of a collection.")
        }
        return Builder(
            parent: ResourceName(database: database, path: name.path.parent), collectionID: id, isGroup: false)
    }

    /// Collects conditions.
    private struct Builder {
        let parent: ResourceName
        let collectionID: String
        let isGroup: Bool
        private var message: StructuredQueryMessage
        private var filters: [StructuredQueryMessage.Filter] = []
        private var limitType = BundleQuery.LimitType.first

        init(parent: ResourceName, collectionID: String, isGroup: Bool) {
            self.parent = parent
            self.collectionID = collectionID
            self.isGroup = isGroup
            message = StructuredQueryMessage(
                from: [StructuredQueryMessage.CollectionSelector(collectionId: collectionID, allDescendants: isGroup)])
        }

        func query(name: String) throws(Status) -> BundleDefinition.NamedQuery {
            var message = message
            if filters.count == 1 { message.where = filters[0] }
            if filters.count > 1 {
                message.where = StructuredQueryMessage.Filter(
                    compositeFilter: StructuredQueryMessage.CompositeFilter(op: .and, filters: filters))
            }
            return try BundleDefinition.NamedQuery(
                name: name, parent: parent, message: message, limitType: limitType)
        }

        private static let kinds = [
            "where", "orderBy", "limit", "limitToLast", "startAt", "startAfter", "endAt", "endBefore",
        ]

        mutating func add(_ condition: ConfigurationValue) throws(Status) {
            let members = try condition.members()
            guard members.count == 1, let member = members.first else {
                throw condition.failure("A condition has one member: one of \(Self.kinds.joined(separator: ", ")).")
            }
            let value = member.value
            switch member.name {
            case "where": try addFilter(value)
            case "orderBy": try addOrder(value)
            case "limit", "limitToLast":
                if message.limit != nil { throw value.failure("A query has one limit.") }
                message.limit = Int32(try value.integer(1...Int(Int32.max)))
                limitType = member.name == "limit" ? .first : .last
            // The cursors of the protocol state whether they are before or behind the values.
            case "startAt": message.startAt = try cursor(value, message.startAt, before: true)
            case "startAfter": message.startAt = try cursor(value, message.startAt, before: false)
            case "endBefore": message.endAt = try cursor(value, message.endAt, before: true)
            case "endAt": message.endAt = try cursor(value, message.endAt, before: false)
            case "offset": throw value.failure("A query in a bundle cannot have an offset.")
            default: throw value.failure("Unknown condition\(Spelling.hint(for: member.name, among: Self.kinds))")
            }
        }

        private mutating func addOrder(_ value: ConfigurationValue) throws(Status) {
            var words: [String] = []
            if case .string(let field) = value.content {
                words = [field]
            } else {
                for element in try value.elements() { words.append(try element.string()) }
            }
            let directions = ["asc": StructuredQueryMessage.Direction.ascending, "desc": .descending]
            guard (1...2).contains(words.count), let direction = directions[words.count > 1 ? words[1] : "asc"] else {
                throw value.failure("Expected [FIELD, \"asc\" or \"desc\"].")
            }
            message.orderBy.append(
                StructuredQueryMessage.Order(
                    field: StructuredQueryMessage.FieldReference(fieldPath: words[0]), direction: direction))
        }

        private mutating func addFilter(_ value: ConfigurationValue) throws(Status) {
            let elements = try value.elements()
            guard elements.count == 3 else { throw value.failure("Expected [FIELD, OPERATOR, VALUE].") }
            let field = try elements[0].string()
            guard let op = BundleQueryCoding.operators[try elements[1].string()] else {
                let known = BundleQueryCoding.operators.keys.sorted().joined(separator: " ")
                throw elements[1].failure("Unknown operator; there are \(known).")
            }
            let reference = StructuredQueryMessage.FieldReference(fieldPath: field)
            let operand = try self.value(elements[2], isName: field == "__name__")
            var filter = StructuredQueryMessage.Filter()
            if let unary = BundleQueryCoding.unary(op, operand) {
                filter.unaryFilter = StructuredQueryMessage.UnaryFilter(op: unary, field: reference)
            } else {
                filter.fieldFilter = StructuredQueryMessage.FieldFilter(field: reference, op: op, value: operand)
            }
            filters.append(filter)
        }

        /// One value, or a list with one value for each order.
        private func cursor(
            _ value: ConfigurationValue, _ present: CursorMessage?, before: Bool
        ) throws(Status) -> CursorMessage {
            if present != nil { throw value.failure("A query has one start and one end.") }
            var elements = [value]
            if case .array(let list) = value.content { elements = list }
            if elements.isEmpty { throw value.failure("A cursor needs a value.") }
            var values: [Value] = []
            for (index, element) in elements.enumerated() {
                let isName =
                    index < message.orderBy.count ? message.orderBy[index].field?.fieldPath == "__name__" : false
                values.append(try self.value(element, isName: isName))
            }
            return CursorMessage(values: values, before: before)
        }

        /// - Parameter isName: whether a string is a document's id or path.
        private func value(_ value: ConfigurationValue, isName: Bool) throws(Status) -> Value {
            switch value.content {
            case .null: return .null
            case .boolean(let flag): return .boolean(flag)
            case .number(let number): return Int64(exactly: number).map { .integer($0) } ?? .double(number)
            case .string(let string) where isName:
                let path = string.contains("/") || isGroup ? string : "\(collection)/\(string)"
                return .reference("\(parent.database.documentsRoot)/\(path)")
            case .string(let string): return .string(string)
            case .array(let elements):
                var values: [Value] = []
                for element in elements { values.append(try self.value(element, isName: isName)) }
                return .array(values)
            case .object:
                // A value of the REST API: {"timestampValue": "…"}.
                return try value.located { () throws(Status) in
                    let cursor = try CursorMessage(json: Array("{\"values\":[".utf8) + value.json + Array("]}".utf8))
                    return cursor.values[0]
                }
            }
        }

        private var collection: String {
            parent.path.isRoot ? collectionID : "\(parent.path.string)/\(collectionID)"
        }
    }

    private static let operators: [String: StructuredQueryMessage.FieldFilter.Operator] = [
        "<": .lessThan, "<=": .lessThanOrEqual, "==": .equal, "!=": .notEqual, ">=": .greaterThanOrEqual,
        ">": .greaterThan, "array-contains": .arrayContains, "in": .in, "not-in": .notIn,
        "array-contains-any": .arrayContainsAny,
    ]

    /// In the protocol, comparisons with null and NaN are separate filters.
    private static func unary(
        _ op: StructuredQueryMessage.FieldFilter.Operator, _ operand: Value
    ) -> StructuredQueryMessage.UnaryFilter.Operator? {
        let isEqual = op == .equal
        guard isEqual || op == .notEqual else { return nil }
        switch operand {
        case .null: return isEqual ? .isNull : .isNotNull
        case .double(let number) where number.isNaN: return isEqual ? .isNan : .isNotNan
        default: return nil
        }
    }
}
