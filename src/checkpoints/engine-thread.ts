import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { messageOf, packageRoot } from '../lib/index.ts';
import type { CallArguments, CallName, CallResult, Engines, TreePlace } from './calls.ts';
import type { DiffRequest, TurnDiff } from './diff.ts';
import { CheckpointError } from './errors.ts';

export type ThreadRequest = { readonly id: number } & (
  | {
      readonly kind: 'call';
      readonly place: TreePlace;
      readonly name: CallName;
      readonly args: CallArguments<CallName>;
    }
  | { readonly kind: 'release'; readonly treeId: string }
  | { readonly kind: 'storedDiff'; readonly root: string; readonly directory: string; readonly request: DiffRequest }
);

export type ThreadReply = { readonly id: number } & (
  | { readonly result: unknown }
  | { readonly error: { readonly message: string; readonly isExpected: boolean } }
);

/** A tree of 200,000 entries takes a third of it. A thread that needs more ends alone: its checkpoint fails. */
const resourceLimits = { maxOldGenerationSizeMb: 1_024, maxYoungGenerationSizeMb: 32 };

/**
 * Runs a bundle from its text. Node would look for a file by the directory of this process, which may have been deleted, and after
 * an upgrade in place it would find the file of another version.
 */
const runBundle = `
const { workerData: { file, source } } = require('node:worker_threads');
const { compileFunction, constants } = require('node:vm');
const options = { filename: file, importModuleDynamically: constants.USE_MAIN_CONTEXT_DEFAULT_LOADER };
const names = ['exports', 'require', 'module', '__filename', '__dirname'];
const module_ = { exports: {} };
const { createRequire } = require('node:module');
const { dirname } = require('node:path');
compileFunction(source, names, options)(module_.exports, createRequire(file), module_, file, dirname(file));
`;

/** Program of this build: a source beside sources, a bundle in `dist`. */
function program(): string {
  const isSource = import.meta.url.endsWith('.ts');
  if (isSource) return fileURLToPath(new URL('thread-main.ts', import.meta.url));
  return join(packageRoot(), 'dist', 'checkpoints', 'thread-main.cjs');
}

export interface EngineThreadOptions {
  /** Program of the thread; another one for tests. */
  readonly file?: string | URL;
  /** Whether the thread stays when the last store is released: for a process of many servers, one after the other. */
  readonly isKept?: boolean;
}

/**
 * Engines in a thread of their own, so that none of their work blocks the event loop. The thread begins with the first call, ends
 * when the last store is released, and keeps the process alive only while it works.
 */
export class EngineThread implements Engines {
  readonly #pending = new Map<number, PromiseWithResolvers<unknown>>();
  readonly #open = new Set<string>();
  /** Requests for a thread that has not begun. */
  #waiting: ThreadRequest[] = [];
  #worker: Worker | undefined;
  readonly #program: string | URL;
  /** Text of the program when it is a bundle. */
  readonly #source: string | undefined;
  readonly #isKept: boolean;
  #nextId = 1;

  constructor({ file = program(), isKept = false }: EngineThreadOptions = {}) {
    this.#program = file;
    this.#source = typeof file === 'string' && file.endsWith('.cjs') ? readFileSync(file, 'utf8') : undefined;
    this.#isKept = isKept;
  }

  async call<N extends CallName>(place: TreePlace, name: N, args: CallArguments<N>): Promise<CallResult<N>> {
    this.#open.add(place.treeId);
    return (await this.#ask((id) => ({ id, kind: 'call', place, name, args }))) as CallResult<N>;
  }

  /** Reads changes of turns from a store that no engine has open. Writes nothing. @throws CheckpointError, Error */
  async storedDiff(root: string, directory: string, request: DiffRequest): Promise<TurnDiff> {
    try {
      return (await this.#ask((id) => ({ id, kind: 'storedDiff', root, directory, request }))) as TurnDiff;
    } finally {
      await this.#rest();
    }
  }

  prepare(): void {
    if (this.#worker || this.#waiting.length > 0) return;
    // No caller waits for the thread yet.
    this.#begin()?.unref();
  }

  async release(treeId: string): Promise<void> {
    if (!this.#open.delete(treeId) || (!this.#worker && this.#waiting.length === 0)) return;
    await this.#ask((id) => ({ id, kind: 'release', treeId }));
    await this.#rest();
  }

  /** Ends the worker thread when it is idle. */
  async #rest(): Promise<void> {
    if (this.#isKept || this.#open.size > 0 || this.#pending.size > 0) return;
    const worker = this.#worker;
    this.#worker = undefined;
    await worker?.terminate();
  }

  #ask(make: (id: number) => ThreadRequest): Promise<unknown> {
    const id = this.#nextId++;
    const reply = Promise.withResolvers<unknown>();
    this.#pending.set(id, reply);
    const request = make(id);
    if (this.#worker) this.#post(this.#worker, request);
    // Starting a thread takes milliseconds: in a separate turn of the event loop, other requests are served before.
    else if (this.#waiting.push(request) === 1) setImmediate(() => this.#begin());
    return reply.promise;
  }

  #post(worker: Worker, request: ThreadRequest): void {
    worker.ref();
    worker.postMessage(request);
  }

  #begin(): Worker | undefined {
    const waiting = this.#waiting;
    this.#waiting = [];
    try {
      const worker = this.#createWorker();
      worker.on('message', (reply: ThreadReply) => this.#take(reply));
      worker.on('error', (error) => this.#lose(worker, error.message));
      worker.on('exit', () => this.#lose(worker, 'it ended'));
      this.#worker = worker;
      for (const request of waiting) this.#post(worker, request);
      return worker;
    } catch (error) {
      this.#fail(messageOf(error));
      return undefined;
    }
  }

  #createWorker(): Worker {
    const options = { name: 'checkpoints', env: { TMPDIR: tmpdir() }, resourceLimits };
    const source = this.#source;
    if (source === undefined) return new Worker(this.#program, options);
    return new Worker(runBundle, { ...options, eval: true, workerData: { file: this.#program, source } });
  }

  #take(reply: ThreadReply): void {
    const pending = this.#pending.get(reply.id);
    this.#pending.delete(reply.id);
    if (this.#pending.size === 0) this.#worker?.unref();
    if ('result' in reply) pending?.resolve(reply.result);
    else {
      const { message, isExpected } = reply.error;
      pending?.reject(isExpected ? new CheckpointError(message) : new Error(message));
    }
  }

  /** The next thread completes the work of a lost one: its stores are crash-safe. */
  #lose(worker: Worker, reason: string): void {
    if (this.#worker !== worker) return;
    this.#worker = undefined;
    this.#fail(reason);
  }

  #fail(reason: string): void {
    this.#open.clear();
    const lost = [...this.#pending.values()];
    this.#pending.clear();
    for (const each of lost) each.reject(new CheckpointError(`the thread of the checkpoints failed: ${reason}`));
  }
}
