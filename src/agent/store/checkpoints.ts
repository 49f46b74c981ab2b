import type { Worker } from 'node:worker_threads';
import { defaults } from '../../protocol/index.ts';

/** A little statement changes a page of the table and one of its index, and often pages that the one before changed. */
const pagesPerStatement = 1.5;
const charsPerPage = 3_000;

/**
 * Moves pages from the log to the database on a thread of its own: it flushes twice to disk, which takes tens of milliseconds
 * that no turn should wait for. How much was written is estimated; nothing depends on it but when this happens. The
 * thread is started when there is enough to do, and does not keep the process alive.
 */
export class Checkpoints {
  readonly #file: string;
  /** 0: idle, 1: at work, 2: has closed the database. */
  readonly #state = new Int32Array(new SharedArrayBuffer(4));
  #worker: Worker | undefined;
  #pages = 0;
  #isUsable = true;

  constructor(file: string) {
    this.#file = file;
  }

  /** Whether the disk is being flushed: a write during the flush may have to wait. */
  get isAtWork(): boolean {
    return this.#isUsable && Atomics.load(this.#state, 0) === 1;
  }

  /** Called after every write, with the values of its statement. */
  wrote(values: readonly unknown[]): void {
    let pages = pagesPerStatement;
    for (const value of values) if (typeof value === 'string') pages += value.length / charsPerPage;
    this.wrotePages(pages);
  }

  /** Called after a write of a known number of pages. */
  wrotePages(pages: number): void {
    this.#pages += pages;
    if (this.#pages >= defaults.agent.checkpointPages) this.#begin();
  }

  /** Moves all there is, and empties the file of the log. Repeated for a moment while another process reads the log. */
  truncate(): void {
    if (!this.#isUsable) return;
    this.#worker ??= this.#start();
    Atomics.store(this.#state, 0, 1);
    this.#worker.postMessage('truncate');
  }

  /** Waits until the thread has let go of the database. */
  close(): void {
    this.#isUsable = false;
    if (!this.#worker) return;
    this.#worker.postMessage('close');
    while (Atomics.load(this.#state, 0) !== 2) {
      if (Atomics.wait(this.#state, 0, Atomics.load(this.#state, 0), defaults.agent.checkpointCloseMs) === 'timed-out')
        break;
    }
    void this.#worker.terminate();
    this.#worker = undefined;
  }

  #begin(): void {
    if (!this.#isUsable || Atomics.compareExchange(this.#state, 0, 0, 1) !== 0) return;
    this.#pages = 0;
    this.#worker ??= this.#start();
    this.#worker.postMessage('checkpoint');
  }

  #start(): Worker {
    // A server that writes little loads no threads.
    const { Worker } = process.getBuiltinModule('node:worker_threads');
    const worker = new Worker(`(${checkpointer})()`, {
      eval: true,
      name: 'checkpoints',
      execArgv: [],
      env: {},
      workerData: { file: this.#file, state: this.#state },
      resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 2 },
    });
    // Without the thread the log only grows longer, until SQLite moves it in the way of a commit.
    worker.once('error', () => {
      this.#isUsable = false;
      this.#worker = undefined;
    });
    worker.unref();
    return worker;
  }
}

/** Program of the thread. It is passed as text, so it must refer to nothing outside of itself. */
function checkpointer(): void {
  const { parentPort, workerData } = process.getBuiltinModule('node:worker_threads');
  process.removeAllListeners('warning');
  const { DatabaseSync } = process.getBuiltinModule('node:sqlite');
  const { file, state } = workerData as { file: string; state: Int32Array<SharedArrayBuffer> };
  const database = new DatabaseSync(file);
  database.exec('PRAGMA synchronous = NORMAL');
  const checkpoint = database.prepare('PRAGMA wal_checkpoint(PASSIVE)');
  // Blocks writers, so it comes last: only the latest writes are left to move.
  const truncate = database.prepare('PRAGMA wal_checkpoint(TRUNCATE)');

  const become = (now: number) => {
    Atomics.store(state, 0, now);
    Atomics.notify(state, 0);
  };
  // A concurrent writer is followed a few times: only a log that is moved whole starts again at its beginning.
  const moveAll = () => {
    for (let times = 0; times < 4; times += 1) {
      const { busy, log, checkpointed } = checkpoint.get() ?? {};
      if (busy !== 0 || log === checkpointed) return;
    }
  };
  const pause = new Int32Array(new SharedArrayBuffer(4));
  const truncateAll = () => {
    for (let times = 0; truncate.get()?.['busy'] !== 0 && times < 50; times += 1) Atomics.wait(pause, 0, 0, 10);
  };
  parentPort?.on('message', (message) => {
    if (message === 'close') {
      database.close();
      become(2);
      return;
    }
    try {
      moveAll();
      if (message === 'truncate') truncateAll();
    } catch {
      // A full or broken disk also fails the next commit, which reports it.
    } finally {
      become(0);
    }
  });
}
