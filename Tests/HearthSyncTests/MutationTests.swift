import HearthModel
import HearthTestSupport
import Testing

@testable import HearthSync

@Suite("Mutations")
struct MutationTests {
    private let key = ResourcePath("c/a")
    private let now = Timestamp.seconds(50)

    private func apply(
        _ mutation: Mutation, to document: ClientDocument, changed: Set<FieldPath>? = []
    ) -> (document: ClientDocument, changed: Set<FieldPath>?) {
        var document = document
        let changed = mutation.applyLocally(to: &document, changed: changed, localWriteTime: now)
        return (document, changed)
    }

    private func patch(
        _ fields: MapValue, _ mask: [String], _ transforms: [FieldTransform] = [],
        precondition: Precondition = .exists(true)
    ) -> Mutation {
        Mutation(
            key: key, kind: .patch(fields, mask: mask.map(SpecQuery.fieldPath)), transforms: transforms,
            precondition: precondition)
    }

    @Test("A set replaces the whole document")
    func set() {
        let result = apply(Mutation(key: key, kind: .set(["b": .integer(2)])), to: .found("c/a", 3, ["a": .null]))
        #expect(result.document.fields == ["b": .integer(2)])
        #expect(result.document.version == .none && result.document.hasLocalMutations)
        #expect(result.changed == nil)
    }

    @Test("A patch sets, deletes and retains fields")
    func patches() {
        let document = ClientDocument.found(
            "c/a", 3, ["a": .map(["x": .integer(1), "y": .integer(2)]), "b": .string("stays"), "c": .null])
        let result = apply(patch(["a": .map(["x": .integer(9)])], ["a.x", "a.y", "c", "missing.z"]), to: document)
        #expect(result.document.fields == ["a": .map(["x": .integer(9)]), "b": .string("stays")])
        #expect(result.changed == Set(["a.x", "a.y", "c", "missing.z"].map(SpecQuery.fieldPath)))
        #expect(apply(patch([:], ["c"]), to: document, changed: nil).changed == nil)
    }

    @Test("A failed precondition changes nothing")
    func preconditions() {
        let missing = ClientDocument(key: key, kind: .missing, version: .seconds(2))
        let result = apply(patch(["a": .null], ["a"]), to: missing)
        #expect(result.document == missing && result.changed == [])
        let found = ClientDocument.found("c/a", 3)
        #expect(Precondition.updateTime(.seconds(3)).holds(for: found))
        #expect(!Precondition.updateTime(.seconds(2)).holds(for: found))
        #expect(!Precondition.exists(false).holds(for: found) && Precondition.exists(false).holds(for: missing))
        #expect(!Precondition.exists(true).holds(for: ClientDocument(key: key, kind: .unknown, version: .seconds(1))))
    }

    @Test("A delete leaves a missing document without a version")
    func delete() {
        let result = apply(Mutation(key: key, kind: .delete), to: .found("c/a", 3, ["a": .null]))
        #expect(result.document.kind == .missing && result.document.version == .none && result.changed == nil)
        #expect(result.document.hasLocalMutations && result.document.fields.isEmpty)
    }

    @Test("Transforms use the fields before the write")
    func transforms() throws {
        func local(_ operation: FieldTransform.Operation, _ previous: Value?) -> Value? {
            var document = ClientDocument.found("c/a", 1)
            if let previous { document.fields.set("f", previous) }
            let transform = FieldTransform(path: FieldPath("f"), operation: operation)
            return apply(patch([:], [], [transform]), to: document).document.fields["f"]
        }
        let time = try #require(local(.requestTime, .integer(1)))
        let pending = try #require(PendingServerTimestamp(time))
        #expect(pending.localWriteTime == now && pending.previousValue == .integer(1))
        #expect(local(.increment(.integer(2)), .integer(3)) == .integer(5))
        #expect(local(.increment(.double(0.5)), .integer(3)) == .double(3.5))
        #expect(local(.increment(.integer(2)), .string("x")) == .integer(2))
        #expect(local(.increment(.integer(2)), nil) == .integer(2))
        #expect(local(.increment(.integer(1)), .integer(.max)) == .integer(.max))
        #expect(local(.increment(.integer(-1)), .integer(.min)) == .integer(.min))
        #expect(local(.minimum(.integer(1)), .double(1)) == .double(1), "of equal numbers the previous one remains")
        #expect(local(.maximum(.double(2)), .integer(1)) == .double(2))
        #expect(local(.maximum(.integer(2)), .null) == .integer(2))
        let elements: [Value] = [.integer(1), .string("b"), .string("b")]
        #expect(
            local(.appendMissingElements(elements), .array([.double(1), .string("a")]))
                == .array([.double(1), .string("a"), .string("b")]))
        #expect(local(.appendMissingElements(elements), .null) == .array([.integer(1), .string("b")]))
        #expect(
            local(.removeAllFromArray(elements), .array([.double(1), .string("a"), .string("b")]))
                == .array([.string("a")]))
        // Two transforms and a value: none uses the other's result.
        let both = patch(
            ["a": .integer(10)], ["a"],
            [FieldTransform(path: FieldPath("b"), operation: .increment(.integer(1)))])
        let result = apply(both, to: .found("c/a", 1, ["a": .integer(1), "b": .integer(1)]))
        #expect(result.document.fields == ["a": .integer(10), "b": .integer(2)])
        #expect(result.changed == [FieldPath("a"), FieldPath("b")])
    }

    @Test("Transforms of a set start from nothing, but for the previous value of a timestamp")
    func transformsOfSets() throws {
        func transform(_ name: String, _ operation: FieldTransform.Operation) -> FieldTransform {
            FieldTransform(path: FieldPath(name), operation: operation)
        }
        let mutation = Mutation(
            key: key, kind: .set(["a": .integer(1)]),
            transforms: [
                transform("n", .increment(.integer(1))), transform("l", .appendMissingElements([.integer(2)])),
                transform("least", .minimum(.integer(5))), transform("t", .requestTime),
            ])
        let before = ClientDocument.found(
            "c/a", 1,
            ["n": .double(0.25), "l": .array([.integer(1)]), "least": .integer(3), "t": .integer(7), "old": .null])
        let local = apply(mutation, to: before).document.fields
        #expect(local["n"] == .integer(1) && local["l"] == .array([.integer(2)]) && local["least"] == .integer(5))
        #expect(local["old"] == nil && local["a"] == .integer(1))
        #expect(PendingServerTimestamp(try #require(local["t"]))?.previousValue == .integer(7))
        var document = before
        try mutation.applyAcknowledged(
            to: &document,
            MutationResult(
                version: .seconds(9),
                transformResults: [.integer(1), .null, .integer(5), .timestamp(.seconds(9))]))
        #expect(document.fields["l"] == .array([.integer(2)]))
        #expect(mutation.base(for: before) == nil)
    }

    @Test("On acknowledgement the server's values apply, arrays are computed again")
    func acknowledgement() throws {
        let mutation = patch(
            ["a": .integer(1)], ["a"],
            [
                FieldTransform(path: FieldPath("n"), operation: .increment(.integer(1))),
                FieldTransform(path: FieldPath("t"), operation: .requestTime),
                FieldTransform(path: FieldPath("l"), operation: .appendMissingElements([.integer(2)])),
            ])
        let result = MutationResult(
            version: .seconds(9), transformResults: [.integer(43), .timestamp(.seconds(9)), .null])
        var document = ClientDocument.found("c/a", 3, ["n": .integer(1), "l": .array([.integer(1)])])
        try mutation.applyAcknowledged(to: &document, result)
        #expect(
            document.fields == [
                "a": .integer(1), "n": .integer(43), "t": .timestamp(.seconds(9)),
                "l": .array([.integer(1), .integer(2)]),
            ])
        #expect(document.version == .seconds(9) && document.hasCommittedMutations)
        var missing = ClientDocument(key: key, kind: .missing, version: .seconds(3))
        try mutation.applyAcknowledged(to: &missing, result)
        #expect(missing.kind == .unknown && missing.version == .seconds(9) && missing.fields.isEmpty)
        #expect(throws: Status.self) {
            try mutation.applyAcknowledged(to: &document, MutationResult(version: .seconds(9), transformResults: []))
        }
    }

    @Test("Increments have a base, other transforms none")
    func base() throws {
        let mutation = Mutation(
            key: key, kind: .patch([:], mask: []),
            transforms: [
                FieldTransform(path: FieldPath("n"), operation: .increment(.integer(1))),
                FieldTransform(path: SpecQuery.fieldPath("m.d"), operation: .increment(.integer(1))),
                FieldTransform(path: FieldPath("t"), operation: .requestTime),
                FieldTransform(path: FieldPath("x"), operation: .maximum(.integer(1))),
            ])
        let base = try #require(mutation.base(for: .found("c/a", 1, ["n": .double(1.5), "m": .string("no map")])))
        guard case .patch(let fields, let mask) = base.kind else { throw SpecFailure("a base is a patch") }
        #expect(fields == ["n": .double(1.5), "m": .map(["d": .integer(0)])])
        #expect(mask == [FieldPath("n"), SpecQuery.fieldPath("m.d")] && base.precondition == .exists(true))
        #expect(Mutation(key: key, kind: .delete).base(for: .found("c/a")) == nil)
    }

    @Test("An overlay has the effect of all mutations")
    func overlays() throws {
        var random = SeededGenerator(seed: 20)
        let paths = ["a", "b", "m.x", "m.y", "m.n.z"].map(SpecQuery.fieldPath)
        for round in 0..<2000 {
            let remote = ClientDocument.found(
                "c/a", 3, ["a": .integer(0), "m": random.chance(50) ? .map(["x": .integer(0)]) : .string("s")])
            var document = remote
            var changed: Set<FieldPath>? = []
            for _ in 0...random.below(4) {
                let mutation = Self.random(key, paths, &random)
                changed = mutation.applyLocally(to: &document, changed: changed, localWriteTime: now)
            }
            guard let overlay = Mutation.overlay(for: document, changed: changed) else {
                #expect(document == remote, "round \(round)")
                continue
            }
            var again = remote
            _ = overlay.applyLocally(to: &again, changed: [], localWriteTime: now)
            #expect(again == document, "round \(round): \(overlay)")
        }
    }

    private static func random(_ key: ResourcePath, _ paths: [FieldPath], _ random: inout SeededGenerator) -> Mutation {
        if random.chance(8) { return Mutation(key: key, kind: .delete) }
        var fields = MapValue()
        var mask: [FieldPath] = []
        for path in paths where random.chance(40) {
            mask.append(path)
            if random.chance(60) { fields.set(path, .integer(Int64(random.below(9)))) }
        }
        if random.chance(15) { return Mutation(key: key, kind: .set(fields)) }
        let transforms = [FieldTransform(path: FieldPath("n"), operation: .increment(.integer(1)))]
        return Mutation(
            key: key, kind: .patch(fields, mask: mask), transforms: random.chance(30) ? transforms : [],
            precondition: random.chance(50) ? .exists(true) : .none)
    }

    @Test("Mutations are unchanged after encoding and decoding, overlays with pending timestamps too")
    func messages() throws {
        let serializer = MutationSerializer(database: DatabaseName(project: "p"))
        let pending = PendingServerTimestamp(localWriteTime: .seconds(1), previousValue: .integer(1)).value
        let mutations = [
            Mutation(key: key, kind: .set(["t": pending])), patch(["a": .map(["b": pending])], ["a.b", "c"]),
            patch([:], [], precondition: .none), Mutation(key: key, kind: .delete, precondition: .exists(true)),
            Mutation(key: key, kind: .verify, precondition: .updateTime(.seconds(4))),
            patch(
                [:], [],
                [
                    FieldTransform(path: SpecQuery.fieldPath("a.b"), operation: .requestTime),
                    FieldTransform(path: FieldPath("l"), operation: .removeAllFromArray([.null])),
                    FieldTransform(path: FieldPath("n"), operation: .maximum(.double(-0.0))),
                ]),
        ]
        for mutation in mutations {
            let message = serializer.message(mutation)
            let again = try serializer.mutation(message)
            #expect(serializer.message(again).protobuf() == message.protobuf())
            #expect(again.key == mutation.key && again.precondition == mutation.precondition)
        }
        #expect(throws: Status.self) { try serializer.mutation(.init()) }
    }
}
