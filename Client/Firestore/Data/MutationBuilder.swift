internal import HearthModel
internal import HearthSync

/// Converts write calls to mutations. Only an update gets a precondition: transactions set their own.
struct MutationBuilder {
    private let reader: UserDataReader

    init(_ firestore: Firestore) { reader = firestore.reader }

    func set(_ data: [String: Any], _ key: ResourcePath) throws(Status) -> Mutation {
        let parsed = try reader.set(data)
        return Mutation(key: key, kind: .set(parsed.fields), transforms: parsed.transforms)
    }

    func set(_ data: [String: Any], _ key: ResourcePath, merge: Bool) throws(Status) -> Mutation {
        merge ? patch(try reader.merge(data), key) : try set(data, key)
    }

    func set(_ data: [String: Any], _ key: ResourcePath, mergeFields: [Any]) throws(Status) -> Mutation {
        patch(try reader.merge(data, fields: mergeFields), key)
    }

    func update(_ data: [AnyHashable: Any], _ key: ResourcePath) throws(Status) -> Mutation {
        patch(try reader.update(data), key, precondition: .exists(true))
    }

    private func patch(
        _ parsed: UserDataReader.Parsed, _ key: ResourcePath, precondition: Precondition = .none
    ) -> Mutation {
        Mutation(
            key: key, kind: .patch(parsed.fields, mask: parsed.mask), transforms: parsed.transforms,
            precondition: precondition)
    }
}
