/// A host and a port to listen on: see `ServerConfiguration`.
package struct ListeningAddress: Sendable, Equatable {
    package var host: String
    package var port: Int

    package init(host: String, port: Int) {
        self.host = host
        self.port = port
    }
}
