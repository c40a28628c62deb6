import HearthModel
import HearthWire

/// Applies the writes of a commit one after the other to a naive state.
struct NaiveCommit {
    /// The effect of a write on the answer.
    struct Result: Equatable {
        /// Whether the answer contains an update time; its value is known with the commit.
        var tellsTime: Bool
        var transformResults: [Value]
    }

    private(set) var state: NaiveState
    private(set) var results: [Result] = []
    private let before: NaiveState
    private var recreated: Set<ResourcePath> = []
    private let requestTime: Timestamp

    /// - Throws: the code of the first write that fails.
    init(_ writes: [Write], on state: NaiveState, requestTime: Timestamp) throws(Status) {
        self.state = state
        before = state
        self.requestTime = requestTime
        for write in writes { try apply(write) }
    }

    private mutating func apply(_ write: Write) throws(Status) {
        let path = write.document.path
        let present = state[path]
        switch write.precondition {
        case .none: break
        case .exists(let wanted):
            if wanted, present == nil { throw .notFound("") }
            if !wanted, present != nil { throw Status(.alreadyExists, "") }
        case .updateTime(let time):
            let isChanged = recreated.contains(path) || differ(present?.fields, before[path]?.fields)
            if isChanged || (present?.updateTime ?? 0) != time.microseconds { throw .failedPrecondition("") }
        }
        switch write.operation {
        case .verify: results.append(Result(tellsTime: present != nil, transformResults: []))
        case .delete:
            state[path] = nil
            results.append(Result(tellsTime: false, transformResults: []))
        case .update(let input, let mask):
            var fields = mask == nil ? input : present?.fields ?? MapValue()
            for path in mask ?? [] where !(mask ?? []).contains(where: { $0 != path && $0.isPrefix(of: path) }) {
                if let value = input[path: path] { fields.set(path, value) } else { fields.remove(path) }
            }
            var transformResults: [Value] = []
            for transform in write.transforms {
                let (value, result) = transform.apply(to: fields[path: transform.path], requestTime: requestTime)
                fields.set(transform.path, value)
                transformResults.append(result)
            }
            if present == nil, before[path] != nil { recreated.insert(path) }
            state[path] = NaiveDocument(
                path: path, fields: fields, createTime: before[path]?.createTime ?? 0,
                updateTime: before[path]?.updateTime ?? 0)
            results.append(Result(tellsTime: true, transformResults: transformResults))
        }
    }

    /// Whether two documents differ in stored form, where one NaN represents all.
    private func differ(_ one: MapValue?, _ other: MapValue?) -> Bool {
        one.map { FieldsCodec.encode($0) } != other.map { FieldsCodec.encode($0) }
    }

    /// The state with the times of a commit at a version.
    func state(version: Int64) -> NaiveState {
        state.mapValues { document in
            var document = document
            guard let old = before[document.path] else {
                document.createTime = version
                document.updateTime = version
                return document
            }
            let isNew = recreated.contains(document.path)
            document.createTime = isNew ? version : old.createTime
            document.updateTime = isNew || differ(old.fields, document.fields) ? version : old.updateTime
            return document
        }
    }
}
