/** `npm run test:watch [-- FILE…]`: runs test files again when something changes that they depend on. */
import { parseArgs } from 'node:util';
import { ImportGraph } from './import-graph.ts';
import { onEndSignal } from './signals.ts';
import { allTestFiles, NoSuchTestError, needsBuild, resolveTestFiles, runTestFile } from './test-files.ts';
import { watchSources } from './watch-sources.ts';

const usage = `Usage: npm run test:watch [-- FILE…]

Runs the given test files, then runs each again when a file changes that it depends on.
Without files: watches all tests and runs those that a change affects.
A change during a run ends the run and restarts the affected files.

  FILE     path or pattern, for example test/events/event-log.test.ts
  --help   print this

Exit code: 0 when it is ended by Ctrl-C, 2 for wrong arguments.`;

const watched = ['src', 'machines', 'test', 'scripts', 'bench'];

class TestWatch {
  readonly #graph = new ImportGraph();
  readonly #given: readonly string[];
  readonly #end: AbortSignal;
  #run = new AbortController();
  #waiting = new Set<string>();
  #wake: () => void = () => undefined;

  /** @param given the files to run; none: all test files */
  constructor(given: readonly string[], end: AbortSignal) {
    this.#given = given;
    this.#end = end;
    this.#waiting = new Set(given);
  }

  async watch(): Promise<void> {
    const watcher = watchSources(watched, (files) => this.#changed(files));
    const stop = () => {
      this.#run.abort();
      this.#wake();
    };
    this.#end.addEventListener('abort', stop, { once: true });
    while (!this.#end.aborted) {
      if (this.#waiting.size > 0) await this.#runWaiting();
      else await this.#idle();
    }
    watcher.close();
  }

  #changed(files: ReadonlySet<string>): void {
    for (const file of files) this.#graph.forget(file);
    // Tests may be new.
    const tests = this.#given.length > 0 ? this.#given : allTestFiles();
    const affected = this.#graph.affected(tests, files);
    if (affected.length === 0) return;
    console.log(
      `\n${[...files].join(', ')} changed: ${affected.length} test ${affected.length === 1 ? 'file' : 'files'}`,
    );
    for (const file of affected) this.#waiting.add(file);
    this.#run.abort();
    this.#wake();
  }

  /** Runs the waiting files. An aborted run leaves its current file, and those after it, waiting. */
  async #runWaiting(): Promise<void> {
    this.#run = new AbortController();
    const { signal } = this.#run;
    for (const file of [...this.#waiting].toSorted()) {
      if (signal.aborted || this.#end.aborted) return;
      if (needsBuild(this.#graph, file)) {
        console.log(`− ${file} is left out: it runs the built product. Run: npm run test:one -- ${file}`);
        this.#waiting.delete(file);
        continue;
      }
      this.#waiting.delete(file);
      await runTestFile(file, signal);
      if (signal.aborted && !this.#end.aborted) this.#waiting.add(file);
    }
  }

  async #idle(): Promise<void> {
    console.log('Waiting for changes; Ctrl-C ends this.');
    await new Promise<void>((resolve) => {
      this.#wake = resolve;
    });
  }
}

/** @returns the files, or the exit code of a command line that watches nothing */
function readArguments(): readonly string[] | number {
  try {
    const { values, positionals } = parseArgs({ allowPositionals: true, options: { help: { type: 'boolean' } } });
    if (!values.help) return resolveTestFiles(positionals);
    console.log(usage);
    return 0;
  } catch (error) {
    if (!(error instanceof NoSuchTestError) && !(error instanceof TypeError)) throw error;
    console.error(error.message);
    return 2;
  }
}

const files = readArguments();
if (typeof files === 'number') {
  process.exitCode = files;
} else {
  await new TestWatch(files, onEndSignal()).watch();
}
