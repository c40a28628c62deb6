/// One method of a service, for its description.
package struct MethodDescription: Sendable {
    package var name: String
    package var input: any WireMessage.Type
    package var output: any WireMessage.Type
    package var clientStreams: Bool
    package var serverStreams: Bool

    package init(
        _ name: String, _ input: any WireMessage.Type, _ output: any WireMessage.Type, clientStreams: Bool = false,
        serverStreams: Bool = false
    ) {
        self.name = name
        self.input = input
        self.output = output
        self.clientStreams = clientStreams
        self.serverStreams = serverStreams
    }
}
