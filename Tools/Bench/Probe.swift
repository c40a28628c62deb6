import HearthLoadClient
import HearthToolSupport

/// One call, all of its messages.
enum Probe {
    static func call(_ generator: LoadGenerator, _ message: [UInt8]) throws(ToolFailure) -> [[UInt8]] {
        guard case .grpc(let path, let metadata) = generator.wire else { return [] }
        let state = ProbeState()
        let loop = try ToolLoop.start()
        defer { loop.stopAndJoin() }
        let configuration = HTTP2Client.Configuration(host: generator.host, port: generator.port)
        HTTP2Client.connect(configuration, on: loop) { result in
            switch result {
            case .failure(let status): state.end(status)
            case .success(let client):
                let call = GRPCClient(client).open(path: path, metadata: metadata)
                call.onMessage = { state.add($0) }
                call.onFinish = { status, _ in
                    client.close()
                    state.end(status)
                }
                call.send(message)
                call.halfClose()
            }
        }
        let (status, messages) = state.wait()
        if status.code != .ok { throw ToolFailure(.failed, status.description) }
        return messages
    }
}
