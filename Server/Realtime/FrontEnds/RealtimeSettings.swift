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
        // The Emulator UI asks for the databases without a credential.
        // Source: firebase-tools-ui, src/components/Database/DatabaseContainer.tsx.
        let isOpen = resource == .databases && service.isEmulator
        do throws(Status) {
            if !isOpen { try service.access.requireAdministrator(identity, of: namespace, writes: writes) }
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
                case .databases:
                    // It reads folders.
                    service.answer(call) { [self] () throws(Status) in
                        let answer = try listDatabases()
                        call.onLoop { [call] in call.respond(answer) }
                    }
                case .data, .upload, .unknown: throw .notFound("There is nothing at \(call.head.path).")
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

    // MARK: Namespaces

    private func listDatabases() throws(Status) -> [UInt8] {
        var json: [UInt8] = []
        TreeJSON.append(
            .array(try service.names().map { .object([(name: "name", value: .string($0))]) }), to: &json)
        return json
    }
}
