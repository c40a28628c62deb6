import HearthModel

/// The descriptions of services and of all messages that they name, as google.protobuf.FileDescriptorProto, for gRPC
/// server reflection. Source: google/protobuf/descriptor.proto.
///
/// Messages of one package are in one file that we define; those of google.protobuf are in their standard files.
package struct FileDescriptors: Sendable {
    /// The serialized FileDescriptorProto by file name.
    private var files: [String: [UInt8]] = [:]
    private var fileOfSymbol: [String: String] = [:]
    private var dependencies: [String: [String]] = [:]
    package private(set) var services: [String] = []

    /// - Parameter services: by full name.
    package init(_ services: [(name: String, methods: [MethodDescription])]) {
        var collector = SchemaCollector()
        for method in services.flatMap(\.methods) {
            Self.add(method.input, to: &collector)
            Self.add(method.output, to: &collector)
        }
        self.services = services.map(\.name)
        var builders: [String: FileBuilder] = [:]
        for name in collector.messages.keys.sorted() {
            builders[Self.file(of: name), default: FileBuilder()].messages.append(name)
        }
        for name in collector.enums.keys.sorted() {
            builders[Self.file(of: name), default: FileBuilder()].enums.append(name)
        }
        for service in services {
            builders[Self.file(of: service.name), default: FileBuilder()].services.append(service)
        }
        for (file, builder) in builders {
            dependencies[file] = builder.dependencies(collector, file: file)
            files[file] = builder.build(collector, file: file, package: Self.package(ofFile: file, builder))
            for symbol in builder.symbols { fileOfSymbol[symbol] = file }
        }
    }

    private static func add(_ type: any WireMessage.Type, to collector: inout SchemaCollector) {
        func open<M: WireMessage>(_ type: M.Type) { collector.add(type) }
        open(type)
    }

    /// A file and its dependencies, each once; nil when no file has that name.
    package func file(named name: String) -> [[UInt8]]? {
        guard files[name] != nil else { return nil }
        var order: [String] = []
        func visit(_ name: String) {
            if order.contains(name) { return }
            order.append(name)
            for dependency in dependencies[name] ?? [] { visit(dependency) }
        }
        visit(name)
        return order.compactMap { files[$0] }
    }

    /// The file that declares a service, a method, a message or an enumeration.
    package func file(containing symbol: String) -> [[UInt8]]? {
        fileOfSymbol[symbol].flatMap(file(named:))
    }

    // MARK: Names

    private static let wellKnown: [String: String] = [
        "Timestamp": "timestamp", "Duration": "duration", "Any": "any", "Empty": "empty", "FieldMask": "field_mask",
        "Struct": "struct", "Value": "struct", "ListValue": "struct", "NullValue": "struct", "Int32Value": "wrappers",
        "Int64Value": "wrappers", "DoubleValue": "wrappers",
    ]

    fileprivate static func file(of symbol: String) -> String {
        let package = package(of: symbol)
        let directory = package.split(separator: ".").joined(separator: "/")
        if package == "google.protobuf" {
            let name = symbol.dropFirst(package.count + 1).split(separator: ".")[0]
            return "\(directory)/\(wellKnown[String(name)] ?? "types").proto"
        }
        return
            "\(directory)/\(package.split(separator: ".").first { !$0.hasPrefix("v1") && $0 != "google" && $0 != "grpc" } ?? "types").proto"
    }

    /// Packages are written in lower case, types are not.
    fileprivate static func package(of symbol: String) -> String {
        symbol.split(separator: ".").prefix { $0.first?.isLowercase ?? false }.joined(separator: ".")
    }

    private static func package(ofFile file: String, _ builder: FileBuilder) -> String {
        package(of: builder.messages.first ?? builder.enums.first ?? builder.services.first?.name ?? "")
    }
}

/// Collects the declarations of one file, and writes them.
private struct FileBuilder {
    var messages: [String] = []
    var enums: [String] = []
    var services: [(name: String, methods: [MethodDescription])] = []

    var symbols: [String] {
        messages + enums
            + services.flatMap { service in [service.name] + service.methods.map { "\(service.name).\($0.name)" } }
    }

    func dependencies(_ collector: SchemaCollector, file: String) -> [String] {
        var named: Set<String> = []
        for field in messages.flatMap({ collector.messages[$0] ?? [] }) {
            switch field.type {
            case .message(let name), .enumeration(let name): named.insert(FileDescriptors.file(of: name))
            default: break
            }
        }
        for method in services.flatMap(\.methods) {
            named.insert(FileDescriptors.file(of: method.input.typeName))
            named.insert(FileDescriptors.file(of: method.output.typeName))
        }
        named.remove(file)
        return named.sorted()
    }

    func build(_ collector: SchemaCollector, file: String, package: String) -> [UInt8] {
        var writer = ProtobufWriter()
        writer.string(1, file)
        writer.string(2, package)
        for dependency in dependencies(collector, file: file) { writer.string(3, dependency) }
        for message in messages where isTopLevel(message, package) {
            writer.nested(4) { self.message(message, collector, &$0) }
        }
        for name in enums where isTopLevel(name, package) {
            writer.nested(5) { self.enumeration(name, collector, &$0) }
        }
        for service in services { writer.nested(6) { self.service(service, package, &$0) } }
        writer.string(12, "proto3")
        return writer.bytes
    }

    private func isTopLevel(_ name: String, _ package: String) -> Bool {
        !name.dropFirst(package.count + 1).contains(".")
    }

    private func isNested(_ name: String, in parent: String) -> Bool {
        name.hasPrefix(parent + ".") && !name.dropFirst(parent.count + 1).contains(".")
    }

    private func lastName(_ name: String) -> String { String(name.split(separator: ".").last ?? "") }

    private func message(_ name: String, _ collector: SchemaCollector, _ writer: inout ProtobufWriter) {
        writer.string(1, lastName(name))
        let fields = collector.messages[name] ?? []
        var oneofs: [String] = []
        for field in fields {
            if let group = field.oneof, !oneofs.contains(group) { oneofs.append(group) }
        }
        for field in fields { writer.nested(2) { self.field(field, oneofs, &$0) } }
        for nested in messages where isNested(nested, in: name) {
            writer.nested(3) { self.message(nested, collector, &$0) }
        }
        for nested in enums where isNested(nested, in: name) {
            writer.nested(4) { self.enumeration(nested, collector, &$0) }
        }
        if collector.mapEntries.contains(name) { writer.nested(7) { $0.number(7, 1) } }
        for group in oneofs { writer.nested(8) { $0.string(1, group) } }
    }

    private func field(_ field: SchemaCollector.Field, _ oneofs: [String], _ writer: inout ProtobufWriter) {
        writer.string(1, field.name)
        writer.number(3, UInt64(field.number))
        writer.number(4, field.isRepeated ? 3 : 1)
        switch field.type {
        case .double: writer.number(5, 1)
        case .int64: writer.number(5, 3)
        case .uint64: writer.number(5, 4)
        case .int32: writer.number(5, 5)
        case .bool: writer.number(5, 8)
        case .string: writer.number(5, 9)
        case .bytes: writer.number(5, 12)
        case .uint32: writer.number(5, 13)
        case .message(let name):
            writer.number(5, 11)
            writer.string(6, "." + name)
        case .enumeration(let name):
            writer.number(5, 14)
            writer.string(6, "." + name)
        }
        if let group = field.oneof, let index = oneofs.firstIndex(of: group) { writer.number(9, UInt64(index)) }
    }

    private func enumeration(_ name: String, _ collector: SchemaCollector, _ writer: inout ProtobufWriter) {
        writer.string(1, lastName(name))
        for value in collector.enums[name] ?? [] {
            writer.nested(2) {
                $0.string(1, value.name)
                $0.number(2, UInt64(bitPattern: Int64(value.number)))
            }
        }
    }

    private func service(
        _ service: (name: String, methods: [MethodDescription]), _ package: String, _ writer: inout ProtobufWriter
    ) {
        writer.string(1, String(service.name.dropFirst(package.count + 1)))
        for method in service.methods {
            writer.nested(2) {
                $0.string(1, method.name)
                $0.string(2, "." + method.input.typeName)
                $0.string(3, "." + method.output.typeName)
                if method.clientStreams { $0.number(5, 1) }
                if method.serverStreams { $0.number(6, 1) }
            }
        }
    }
}

extension ProtobufWriter {
    fileprivate mutating func string(_ number: UInt32, _ string: String) {
        tag(number, ProtobufReader.WireType.lengthDelimited)
        self.string(string)
    }

    fileprivate mutating func number(_ field: UInt32, _ value: UInt64) {
        tag(field, ProtobufReader.WireType.varint)
        varint(value)
    }

    fileprivate mutating func nested(_ number: UInt32, _ body: (inout ProtobufWriter) -> Void) {
        tag(number, ProtobufReader.WireType.lengthDelimited)
        let start = beginLength()
        body(&self)
        endLength(start)
    }
}
