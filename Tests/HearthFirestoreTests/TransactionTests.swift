import Foundation
import HearthModel
import HearthSync
import Testing

@testable import HearthFirestore

struct TransactionTests {
    private let bench: Bench
    private let waits = Locked<[Double]>([])

    init() throws { bench = try Bench() }

    private func run(
        attemptsMax: Int = 5, _ block: @escaping @Sendable (Transaction, NSErrorPointer) -> Any?
    ) async -> Result<Any?, NSError> {
        var runner = TransactionRunner(firestore: bench.firestore, attemptsMax: attemptsMax)
        runner.sleep = { [waits] seconds in waits.with { $0.append(seconds) } }
        switch await runner.run(block, bench.firestore.engine) {
        case .success(let value): return .success(value.value)
        case .failure(let error): return .failure(error as NSError)
        }
    }

    private var commits: [[Mutation]] { bench.engine.state.with { $0.commits } }

    private func store(_ path: String, version: Int64, _ fields: [String: Value] = [:]) {
        let document = bench.document(path, fields, version: version)
        bench.engine.state.with { $0.stored[document.key] = document }
    }

    private func ref(_ path: String) -> DocumentReference { bench.firestore.document(path) }

    @Test func anEngineThatCannotStartFailsAtOnce() async throws {
        let reason = Status.failedPrecondition("the cache is in use")
        let engine = BrokenEngine(reason: reason, callbacks: DispatchQueue(label: "callbacks"))
        let runs = Locked(0)
        var runner = TransactionRunner(firestore: bench.firestore, attemptsMax: 5)
        runner.sleep = { [waits] seconds in waits.with { $0.append(seconds) } }
        let result = await runner.run(
            { _, _ in
                runs.with { $0 += 1 }
                return nil
            }, engine)
        guard case .failure(let error) = result else { throw reason }
        #expect((error as NSError).localizedDescription == "the cache is in use")
        #expect(waits.with { $0.isEmpty } && runs.with { $0 } == 0)
    }

    /// Each call of a server that accepts and never answers ends with its timeout of a minute.
    @Test func aSilentServerIsNotAskedAgainAfterAMinute() async throws {
        let now = Locked(0.0)
        let attempts = Locked(0)
        var runner = TransactionRunner(firestore: bench.firestore, attemptsMax: 5)
        runner.sleep = { _ in }
        runner.nowSeconds = { now.with { $0 } }
        let result = await runner.run(
            { _, error in
                attempts.with { $0 += 1 }
                now.with { $0 += 40 }
                error?.pointee = FirestoreErrorCode(.deadlineExceeded) as NSError
                return nil
            }, bench.firestore.engine)
        guard case .failure(let error) = result else { throw Status.internalError("must fail") }
        #expect((error as? FirestoreErrorCode)?.code == .deadlineExceeded && attempts.with { $0 } == 2)
    }

    @Test func readsThenWrites() async throws {
        store("c/counter", version: 9, ["n": .integer(4)])
        store("c/other", version: 3)
        let result = try await bench.firestore.runTransaction { [bench] transaction, errorPointer -> Any? in
            do {
                let counter = bench.firestore.document("c/counter")
                let n = try transaction.getDocument(counter).data()?["n"] as? Int ?? 0
                _ = try transaction.getDocument(bench.firestore.document("c/other"))
                _ = try transaction.getDocument(bench.firestore.document("c/missing"))
                transaction.updateData(["n": n + 1], forDocument: counter)
                transaction.setData(["x": 1], forDocument: bench.firestore.document("c/new"))
                transaction.setData(["y": 1], forDocument: counter, merge: true)
                return n + 1
            } catch {
                errorPointer?.pointee = error as NSError
                return nil
            }
        }
        #expect(result as? Int == 5)
        let commit = try #require(commits.first)
        #expect(commit.map(\.key.string) == ["c/counter", "c/new", "c/counter", "c/missing", "c/other"])
        let none = Precondition.none
        #expect(
            commit.map(\.precondition) == [
                .updateTime(ModelTimestamp(microseconds: 9)), none, none, .exists(false),
                .updateTime(ModelTimestamp(microseconds: 3)),
            ])
        guard case .verify = commit[3].kind, case .verify = commit[4].kind else {
            Issue.record("documents that were only read are verified")
            return
        }
    }

    @Test func updatesOfUnreadAndWrittenDocuments() async {
        _ = await run { transaction, _ in
            transaction.updateData(["a": 1], forDocument: ref("c/unread"))
            transaction.deleteDocument(ref("c/gone"))
            transaction.updateData(["a": 2], forDocument: ref("c/gone"))
            return nil
        }
        #expect(commits.first?.map(\.precondition) == [.exists(true), .none, .exists(true)])
    }

    @Test func updateOfAMissingDocument() async {
        let result = await run { transaction, _ in
            _ = try? transaction.getDocument(ref("c/missing"))
            transaction.updateData(["a": 1], forDocument: ref("c/missing"))
            return nil
        }
        #expect(failure(result)?.code == 3)
        #expect(commits.isEmpty)
    }

    @Test func setOfAMissingDocument() async {
        _ = await run { transaction, _ in
            _ = try? transaction.getDocument(ref("c/missing"))
            transaction.setData(["a": 1], forDocument: ref("c/missing"))
            return nil
        }
        #expect(commits.first?.map(\.precondition) == [.exists(false)])
    }

    private func failure(_ result: Result<Any?, NSError>) -> NSError? {
        if case .failure(let error) = result { error } else { nil }
    }

    @Test func readsMustComeFirst() async {
        let result = await run { transaction, errorPointer in
            transaction.setData(["a": 1], forDocument: ref("c/d"))
            do {
                _ = try transaction.getDocument(ref("c/d"))
            } catch {
                errorPointer?.pointee = error as NSError
            }
            return nil
        }
        #expect(failure(result)?.code == 3)
        #expect(failure(result)?.localizedDescription.contains("all reads to be executed before all writes") == true)
        #expect(commits.isEmpty)
        #expect(bench.engine.state.with { $0.lookUps } == 0)
    }

    @Test func swallowedReadErrorsFailTheCommit() async {
        let result = await run { transaction, _ in
            transaction.setData(["a": 1], forDocument: ref("c/d"))
            _ = try? transaction.getDocument(ref("c/d"))
            return nil
        }
        #expect(failure(result)?.code == 3)
    }

    @Test func changedBetweenReadsIsTriedAgain() async {
        let runs = Locked(0)
        let result = await run { transaction, errorPointer in
            let run = runs.with { runs in
                runs += 1
                return runs
            }
            do {
                store("c/d", version: 1)
                _ = try transaction.getDocument(ref("c/d"))
                if run == 1 { store("c/d", version: 2) }
                _ = try transaction.getDocument(ref("c/d"))
            } catch {
                errorPointer?.pointee = error as NSError
            }
            return run
        }
        #expect(runs.with { $0 } == 2)
        #expect((try? result.get()) as? Int == 2)
    }

    @Test func contentionIsTriedAgainWithBackoff() async {
        bench.engine.state.with { $0.commitResults = Array(repeating: .aborted("contention"), count: 4) }
        let runs = Locked(0)
        let result = await run { _, _ in
            runs.with { runs in
                runs += 1
                return runs
            }
        }
        #expect((try? result.get()) as? Int == 5)
        let waits = waits.with { $0 }
        #expect(waits.count == 4, "the first attempt starts at once")
        for (wait, base) in zip(waits, [1, 1.5, 2.25, 3.375]) {
            #expect(wait >= base * 0.5 && wait <= base * 1.5)
        }
    }

    @Test func attemptsAreBounded() async {
        bench.engine.state.with { $0.commitResults = Array(repeating: .aborted("contention"), count: 20) }
        #expect(failure(await run { _, _ in nil })?.code == 10)
        #expect(commits.count == 5)
        #expect(failure(await run(attemptsMax: 1) { _, _ in nil })?.code == 10)
        #expect(commits.count == 6)
    }

    @Test func permanentErrorsEnd() async {
        for code in [Status.Code.permissionDenied, .invalidArgument, .notFound, .outOfRange, .unimplemented, .dataLoss]
        {
            bench.engine.state.with {
                $0.commits = []
                $0.commitResults = [Status(code, "no")]
            }
            #expect(failure(await run { _, _ in nil })?.code == code.rawValue)
            #expect(commits.count == 1)
        }
        for code in [Status.Code.aborted, .alreadyExists, .failedPrecondition, .unavailable, .unauthenticated] {
            bench.engine.state.with {
                $0.commits = []
                $0.commitResults = [Status(code, "no")]
            }
            #expect(failure(await run { _, _ in nil }) == nil)
            #expect(commits.count == 2)
        }
    }

    @Test func theClosuresOwnErrorEnds() async {
        let own = NSError(domain: "App", code: 10)
        #expect(
            failure(
                await run { _, errorPointer in
                    errorPointer?.pointee = own
                    return nil
                }) == own)
        #expect(commits.isEmpty)
    }

    @Test func completionForm() async {
        let value = await withCheckedContinuation { continuation in
            bench.firestore.runTransaction({ _, _ in 7 }) { value, error in
                #expect(error == nil)
                continuation.resume(returning: value as? Int)
            }
        }
        #expect(value == 7)
    }

    @Test func optionsBoundTheAttempts() async {
        bench.engine.state.with { $0.commitResults = Array(repeating: .aborted("contention"), count: 20) }
        let options = TransactionOptions()
        options.maxAttempts = 1
        let code = await withCheckedContinuation { continuation in
            bench.firestore.runTransaction(with: options, block: { _, _ in nil }) { _, error in
                continuation.resume(returning: (error as NSError?)?.code)
            }
        }
        #expect(code == 10)
        #expect(commits.count == 1)
    }
}
