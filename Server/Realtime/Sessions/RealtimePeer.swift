/// How a client is connected: its address, and the number of its connection.
package struct RealtimePeer: Sendable {
    var address: String
    var connection: UInt64

    package init(address: String, connection: UInt64) {
        self.address = address
        self.connection = connection
    }
}
