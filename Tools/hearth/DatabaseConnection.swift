import HearthToolSupport
import HearthModel
import HearthTree

/// Requests on a Realtime Database over REST, one after another.
final class DatabaseConnection {
    /// The server's error.
    struct Refusal: Sendable {
        var status: Int
        var message: String

        /// The requested data exceeds the limit of one response.
        var isTooLarge: Bool { status == 400 && message.hasPrefix("Data requested exceeds") }
    }

    private let server: ServerConnection
    private let namespace: String?

    init(_ parsed: ParsedOptions) throws(ToolFailure) {
        server = try ServerConnection(parsed, defaultAddress: "FIREBASE_DATABASE_EMULATOR_HOST")
        namespace = parsed.string("namespace")
    }

    /// - Parameter server: belongs to the caller.
    init(_ server: ServerConnection, namespace: String?) {
        self.server = server
        self.namespace = namespace
    }

    func close() { server.close() }

    /// The names of all databases of the server.
    func names() throws(ToolFailure) -> [String] {
        let answer = try server.request("GET", "/.inspect/databases.json")
        guard (200...299).contains(answer.status) else {
            throw failure(Self.refusal(answer.status, answer.body), TreePath("/.inspect/databases"))
        }
        do throws(TreeDataError) {
            let databases = try TreeJSON.value(answer.body).array ?? []
            return databases.compactMap { $0["name"]?.string }
        } catch {
            throw ToolFailure(.failed, "The server's list of databases can't be read.")
        }
    }

    // MARK: Requests

    /// - Returns: the body of the response.
    /// - Throws: 1 when the server rejects the request, 69 when the connection breaks.
    func request(
        _ method: String, _ path: TreePath, _ parameters: [(String, String)], _ body: [UInt8] = []
    ) throws(ToolFailure) -> [UInt8] {
        let answer = try server.request(method, target(path, parameters), body)
        if !(200...299).contains(answer.status) { throw failure(Self.refusal(answer.status, answer.body), path) }
        return answer.body
    }

    /// Writes a response to `output` as it arrives.
    func download(_ path: TreePath, _ parameters: [(String, String)], to output: FileOutput) throws(ToolFailure) {
        let refusal = try download(path, parameters) { bytes throws(ToolFailure) in try output.write(bytes) }
        if let refusal { throw failure(refusal, path) }
    }

    /// Passes a response to `body` as it arrives, on the loop's thread, which reads no more meanwhile.
    /// - Returns: the server's error; nil without one.
    func download(
        _ path: TreePath, _ parameters: [(String, String)],
        _ body: @escaping ([UInt8]) throws(ToolFailure) -> Void
    ) throws(ToolFailure) -> Refusal? {
        let refused = try server.download(target(path, parameters), body)
        return refused.map { Self.refusal($0.status, $0.body) }
    }

    private static func refusal(_ status: Int, _ body: [UInt8]) -> Refusal {
        var message = String(decoding: body, as: UTF8.self)
        do throws(TreeDataError) {
            if let string = try TreeJSON.value(body)["error"]?.string { message = string }
        } catch {
            // A server other than a Realtime Database has responded, in another format.
        }
        return Refusal(status: status, message: message)
    }

    func failure(_ refusal: Refusal, _ path: TreePath) -> ToolFailure {
        let message = refusal.message.isEmpty ? "no message" : refusal.message
        return ToolFailure(
            .failed, "\(path): the server refuses (\(refusal.status)): \(message)\(server.hint(refusal.status))")
    }

    // MARK: Addresses

    private func target(_ path: TreePath, _ parameters: [(String, String)]) -> String {
        var string = path.keys.map { "/" + Self.encoded($0.string) }.joined()
        string += path.isRoot ? "/.json" : ".json"
        let all = (namespace.map { [("ns", $0)] } ?? []) + parameters
        if !all.isEmpty { string += "?" + all.map { "\($0.0)=\(Self.encoded($0.1))" }.joined(separator: "&") }
        return string
    }

    private static func encoded(_ string: String) -> String {
        var bytes: [UInt8] = []
        let digits = Array("0123456789ABCDEF".utf8)
        for byte in string.utf8 {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."),
                UInt8(ascii: "~"):
                bytes.append(byte)
            default: bytes += [UInt8(ascii: "%"), digits[Int(byte >> 4)], digits[Int(byte & 15)]]
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
