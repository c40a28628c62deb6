// HearthFuzzing: what a fuzzer calls, a file for each part of the program. An entry takes any bytes and traps when an
// invariant is violated. `HearthFuzz` is libFuzzer's program over them; the tests run them over the seeds.
