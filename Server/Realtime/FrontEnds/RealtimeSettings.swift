import HearthModel
import HearthNetwork
import HearthRules
import HearthTree

/// The administration of a namespace over REST: its rules, and the requests of SDKs and tools to a local development
/// server.
struct RealtimeSettings: Sendable {
    let service: RealtimeService
    let call: RealtimeCall

    func serve(_ resource: RealtimeResource, _ namespace: RealtimeNamespace, _ identity: RealtimeIdentity) {
        let writes = call.method == "PUT" || call.method == "POST"
        do throws(Status) {
            try service.access.requireAdministrator(identity, writes: writes)
        } catch {
            return call.failAfterBody(error)
        }
        call.exchange.collectBody(limitBytes: Limits.realtimeRulesBytesMax) { [self] result in
            do throws(Status) {
                let body = try result.get()
                switch resource {
                case .rules where writes:
                    // They are compiled, and made durable.
                    service.run(call) { [self] () throws(Status) in
                        let answer = try setRules(body, namespace)
                        call.onLoop { [call] in call.respond(answer) }
                    }
                case .rules: call.respond(rules(of: namespace))
                case .functionTriggers: try acceptTriggers()
                case .databases:
                    // It reads folders.
                    service.answer(call) { [self] () throws(Status) in
                        let answer = try listDatabases()
                        call.onLoop { [call] in call.respond(answer) }
                    }
                case .data, .unknown: throw .notFound("There is nothing at \(call.head.path).")
                }
            } catch {
                call.fail(error, http: call.exchange.isBodyTooLarge ? 413 : nil)
            }
        }
    }

    private static let done = Array("{\"status\":\"ok\"}".utf8)

    // MARK: Rules

    /// The rules that apply where none were set.
    private func defaultRules() -> [UInt8] {
        let flag = service.isEmulator
        return Array("{\n  \"rules\": {\n    \".read\": \(flag),\n    \".write\": \(flag)\n  }\n}\n".utf8)
    }

    private func rules(of namespace: RealtimeNamespace) -> [UInt8] {
        let string = namespace.rules?.string ?? defaultRules()
        return call.parameters.isStrict ? StrictJSON.string(string) : string
    }

    private func setRules(_ body: [UInt8], _ namespace: RealtimeNamespace) throws(Status) -> [UInt8] {
        let ruleset: TreeRuleset
        do throws(TreeRulesError) {
            ruleset = try TreeRuleset.compile(body)
        } catch {
            throw .invalidArgument("\(error)\n")
        }
        if !call.parameters.isDryRun { try service.setRules(ruleset, of: namespace) }
        return Self.done
    }

    // MARK: Local development

    /// The functions emulator registers the functions and their triggers here; none are run.
    private func acceptTriggers() throws(Status) {
        guard service.isEmulator else { throw .notFound("There is nothing at \(call.head.path).") }
        call.respond(Self.done)
    }

    private func listDatabases() throws(Status) -> [UInt8] {
        guard service.isEmulator else { throw .notFound("There is nothing at \(call.head.path).") }
        var json: [UInt8] = []
        TreeJSON.append(
            .array(try service.names().map { .object([(name: "name", value: .string($0))]) }), to: &json)
        return json
    }
}

/// Makes JSON from the relaxed form that people write: removes comments, and encodes multi-line strings and trailing
/// commas as JSON requires. The input is known to be a valid rules source.
enum StrictJSON {
    static func string(_ string: [UInt8]) -> [UInt8] {
        var output: [UInt8] = []
        output.reserveCapacity(string.count)
        var index = 0
        while index < string.count {
            let byte = string[index]
            let next = index + 1 < string.count ? string[index + 1] : 0
            switch byte {
            case UInt8(ascii: "\""): copyString(string, &index, &output)
            case UInt8(ascii: "/") where next == UInt8(ascii: "/"):
                while index < string.count, string[index] != UInt8(ascii: "\n") { index += 1 }
            case UInt8(ascii: "/") where next == UInt8(ascii: "*"):
                index += 2
                while index + 1 < string.count,
                    !(string[index] == UInt8(ascii: "*") && string[index + 1] == UInt8(ascii: "/"))
                {
                    index += 1
                }
                index += 2
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                if let last = output.lastIndex(where: { !isSpace($0) }), output[last] == UInt8(ascii: ",") {
                    output.remove(at: last)
                }
                output.append(byte)
                index += 1
            default:
                output.append(byte)
                index += 1
            }
        }
        return output
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || (0x09...0x0D).contains(byte) }

    private static func copyString(_ string: [UInt8], _ index: inout Int, _ output: inout [UInt8]) {
        output.append(string[index])
        index += 1
        while index < string.count {
            let byte = string[index]
            index += 1
            switch byte {
            case UInt8(ascii: "\""):
                output.append(byte)
                return
            case UInt8(ascii: "\\"):
                output.append(byte)
                if index < string.count { output.append(string[index]) }
                index += 1
            case UInt8(ascii: "\n"): output += Array("\\n".utf8)
            case UInt8(ascii: "\r"): output += Array("\\r".utf8)
            case UInt8(ascii: "\t"): output += Array("\\t".utf8)
            default: output.append(byte)
            }
        }
    }
}
