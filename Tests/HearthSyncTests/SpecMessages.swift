import Foundation
import HearthModel
import HearthWire

@testable import HearthSync

/// The spec tests' messages of the watch stream, and documents.
enum SpecMessages {
    typealias Object = [String: Any]

    static func responses(_ action: String, _ argument: Any, _ backend: SpecBackend) throws -> [ListenResponse] {
        switch action {
        case "watchAck": return [target(.add, try ids(argument))]
        case "watchReset": return [target(.reset, try ids(argument))]
        case "watchCurrent":
            guard let list = argument as? [Any], list.count == 2, let token = list[1] as? String else {
                throw SpecFailure("Expected ids and a token: \(argument)")
            }
            return [target(.current, try ids(list[0]), token: token)]
        case "watchRemove": return [try remove(argument, backend)]
        case "watchEntity": return try entities(argument)
        case "watchFilter": return [try filter(argument)]
        case "watchSnapshot":
            let object = try self.object(argument)
            let targetIDs = try ids(object["targetIds"] ?? [Any]())
            var response = target(.noChange, targetIDs, token: object["resumeToken"] as? String ?? "")
            // With target ids the version is not a global snapshot's.
            if targetIDs.isEmpty { response.targetChange?.readTime = try time(object["version"]) }
            return [response]
        default: throw SpecFailure("No action \(action).")
        }
    }

    private static func target(
        _ type: TargetChangeMessage.TargetChangeType, _ targetIDs: [Int32], token: String = ""
    ) -> ListenResponse {
        ListenResponse(
            targetChange: TargetChangeMessage(
                targetChangeType: type, targetIds: targetIDs, resumeToken: Array(token.utf8)))
    }

    private static func remove(_ argument: Any, _ backend: SpecBackend) throws -> ListenResponse {
        let object = try self.object(argument)
        let targetIDs = try ids(object["targetIds"] ?? [Any]())
        var response = target(.remove, targetIDs)
        if let cause = object["cause"] {
            let status = try status(cause)
            response.targetChange?.cause = StatusMessage(code: Int32(status.code.rawValue), message: status.message)
            for targetID in targetIDs { try backend.dropTarget(targetID) }
        }
        return response
    }

    private static func entities(_ argument: Any) throws -> [ListenResponse] {
        let object = try self.object(argument)
        let targetIDs = try ids(object["targets"] ?? [Any]())
        let removedIDs = try ids(object["removedTargets"] ?? [Any]())
        if let path = object["key"] as? String {
            return [
                ListenResponse(
                    documentRemove: DocumentRemoveMessage(document: name(path), removedTargetIds: removedIDs))
            ]
        }
        var documents = object["docs"] as? [Object] ?? []
        if let document = object["doc"] as? Object { documents.append(document) }
        return try documents.map { json in
            guard let path = json["key"] as? String else { throw SpecFailure("A document needs a key: \(json)") }
            let version = try time(json["version"])
            guard let fields = json["value"] as? Object else {
                return ListenResponse(
                    documentDelete: DocumentDeleteMessage(
                        document: name(path), removedTargetIds: targetIDs + removedIDs, readTime: version))
            }
            return ListenResponse(
                documentChange: DocumentChangeMessage(
                    document: DocumentMessage(
                        name: name(path), fields: try SpecQuery.map(fields), updateTime: version),
                    targetIds: targetIDs, removedTargetIds: removedIDs))
        }
    }

    private static func filter(_ argument: Any) throws -> ListenResponse {
        let object = try self.object(argument)
        let targetIDs = try ids(object["targetIds"] ?? [Any]())
        guard targetIDs.count == 1, let keys = object["keys"] as? [String] else {
            throw SpecFailure("A filter has one target and keys: \(argument)")
        }
        var message = ExistenceFilterMessage(targetId: targetIDs[0], count: Int32(keys.count))
        if let bloom = object["bloomFilter"] as? Object {
            var names = BloomFilterMessage(hashCount: Int32(bloom["hashCount"] as? Int ?? 0))
            if let bits = bloom["bits"] as? Object {
                guard let bitmap = Data(base64Encoded: bits["bitmap"] as? String ?? "") else {
                    throw SpecFailure("The bitmap isn't base64: \(bits)")
                }
                names.bits = BitSequenceMessage(bitmap: [UInt8](bitmap), padding: Int32(bits["padding"] as? Int ?? 0))
            }
            message.unchangedNames = names
        }
        return ListenResponse(filter: message)
    }

    /// A document in the form of a snapshot.
    static func document(_ json: Object) throws -> ClientDocument {
        guard let path = json["key"] as? String, let version = json["version"] as? Int else {
            throw SpecFailure("A document needs a key and a version: \(json)")
        }
        var document = ClientDocument(
            key: ResourcePath(string: path), kind: .missing, version: Timestamp(microseconds: Int64(version)))
        if let fields = json["value"] as? Object {
            document.kind = .found
            document.fields = try SpecQuery.map(fields)
        }
        let options = json["options"] as? Object ?? [:]
        if options["hasLocalMutations"] as? Bool == true {
            document.state = .hasLocalMutations
            document.version = .none
        } else if options["hasCommittedMutations"] as? Bool == true {
            document.state = .hasCommittedMutations
        }
        return document
    }

    static func status(_ json: Any?) throws -> Status {
        guard let object = json as? Object, let number = object["code"] as? Int,
            let code = Status.Code(rawValue: number)
        else { throw SpecFailure("No error: \(String(describing: json))") }
        return Status(code, object["message"] as? String ?? "sent by the test")
    }

    private static func name(_ path: String) -> String {
        ResourceName(database: SpecDriver.database, path: ResourcePath(string: path)).string
    }

    private static func time(_ json: Any?) throws -> TimestampMessage {
        guard let version = json as? Int else { throw SpecFailure("No version: \(String(describing: json))") }
        return TimestampMessage(Timestamp(microseconds: Int64(version)))
    }

    private static func object(_ json: Any) throws -> Object {
        guard let object = json as? Object else { throw SpecFailure("Expected an object: \(json)") }
        return object
    }

    private static func ids(_ json: Any) throws -> [Int32] {
        guard let list = json as? [Int] else { throw SpecFailure("Expected target ids: \(json)") }
        return list.map { Int32($0) }
    }
}
