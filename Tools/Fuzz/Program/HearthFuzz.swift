import HearthClientFuzzing
import HearthFuzzing
import Glibc
import HearthBundle
import HearthNetwork
import HearthRules
import HearthFirestoreServer
import HearthRealtimeServer
import HearthDocuments
import HearthTree
import HearthWebSocket
import HearthWire

/// libFuzzer's target: the environment variable FUZZ_TARGET selects the entry point. See docs/reference/abuse.md.
private let entryPoints: [String: @Sendable ([UInt8]) -> Void] = [
    "protobuf": { WireFuzzing.fuzzProtobuf($0) },
    "json": { WireFuzzing.fuzzJSON($0) },
    "bundle": { BundleFuzzing.fuzz($0) },
    "http1": { NetworkFuzzing.fuzzHTTP1($0) },
    "http2": { HTTP2Fuzzing.fuzzInput($0) },
    "http2output": { HTTP2Fuzzing.fuzzOutput($0) },
    "rest": { ServiceFuzzing.fuzzREST($0) },
    "listen": { StreamFuzzing.fuzzListen($0) },
    "write": { StreamFuzzing.fuzzWrite($0) },
    "webchannel": { StreamFuzzing.fuzzWebChannel($0) },
    "rules": { RulesFuzzing.fuzz($0) },
    "tree": { TreeFuzzing.fuzzTree($0) },
    "treequery": { TreeFuzzing.fuzzQuery($0) },
    "websocket": { WebSocketFuzzing.fuzz($0) },
    "realtime": { RealtimeFuzzing.fuzz($0) },
    "databaserules": { TreeRulesFuzzing.fuzz($0) },
    "changes": { ChangeFuzzing.fuzz($0) },
    "indexkeys": { StorageFuzzing.fuzzIndexKeys($0) },
    "triggers": { TriggerFuzzing.fuzzDefinitions($0) },
    "patterns": { TriggerFuzzing.fuzzPatterns($0) },
    "export": { ExportFuzzing.fuzz($0) },
    "documentstore": { StoredFuzzing.fuzzDatabase($0) },
    "treestore": { StoredFuzzing.fuzzNamespace($0) },
    "grpcclient": { GRPCClientFuzzing.fuzz($0) },
    "syncclient": { SyncClientFuzzing.fuzz($0) },
    "databaseclient": { DatabaseClientFuzzing.fuzz($0) },
    "firestorecache": { CacheFuzzing.fuzzFirestore($0) },
    "databasecache": { CacheFuzzing.fuzzDatabase($0) },
    "endpoint": { EndpointFuzzing.fuzz($0) },
]

private let entryPoint: @Sendable ([UInt8]) -> Void = {
    let name = getenv("FUZZ_TARGET").map { String(cString: $0) } ?? ""
    guard let entryPoint = entryPoints[name] else {
        fatalError("FUZZ_TARGET is one of \(entryPoints.keys.sorted()), not \"\(name)\"")
    }
    return entryPoint
}()

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzOneInput(_ bytes: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    entryPoint(Array(UnsafeBufferPointer(start: bytes, count: count)))
    return 0
}

private typealias OneInput = @convention(c) (UnsafePointer<UInt8>?, Int) -> CInt

@_silgen_name("LLVMFuzzerRunDriver")
private func runDriver(
    _ count: UnsafeMutablePointer<CInt>,
    _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>>, _ oneInput: OneInput
) -> CInt

/// SwiftPM starts an executable at its target's own entry, so that libFuzzer's `main` is not called.
@_cdecl("HearthFuzz_main")
public func fuzz(_ count: CInt, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>) -> CInt {
    var count = count
    var arguments = arguments
    return runDriver(&count, &arguments) { fuzzOneInput($0, $1) }
}
