import { randomUUID } from 'node:crypto';
import type * as v from 'valibot';
import { type DelegatedReport, DelegateFileError, type DelegateFiles } from '../agent/index.ts';
import { plainText } from '../lib/index.ts';
import { defaults } from '../protocol/index.ts';
import { JsonRpcError } from '../rpc/index.ts';
import { invalidParams, ReadTextFile, shapedAs, WriteTextFile } from './messages.ts';

const notFound = -32_002;
/** Code for invalid parameters; not -32000, which agents take for a request to log in. */

/** Paths that a session may write for a while: agents ask first, and then have us write. */
export class WriteGrants {
  readonly #until = new Map<string, number>();
  readonly #now: () => number;

  /** @param now milliseconds on a clock that never goes back */
  constructor(now: () => number = () => performance.now()) {
    this.#now = now;
  }

  add(path: string): void {
    for (const [each, until] of this.#until) if (until <= this.#now()) this.#until.delete(each);
    this.#until.set(path, this.#now() + defaults.externalAgent.grantMs);
  }

  covers(path: string): boolean {
    return (this.#until.get(path) ?? Number.NEGATIVE_INFINITY) > this.#now();
  }
}

export interface FileServiceOptions {
  readonly agent: string;
  readonly workspacePath: string;
  readonly files: DelegateFiles;
  readonly report: DelegatedReport;
  /** Write grants of the session. */
  readonly grants: WriteGrants;
}

/** `fs/*` for one prompt: reads and writes files of the workspace by our own rules. */
export class FileService {
  readonly #options: FileServiceOptions;
  readonly #ended = new AbortController();
  /** Writes that have begun. */
  readonly #writing = new Set<Promise<void>>();
  #reading: Promise<unknown> = Promise.resolve();
  #requests = 0;

  constructor(options: FileServiceOptions) {
    this.#options = options;
  }

  /** @returns undefined: another method. @throws JsonRpcError */
  request(method: string, params: unknown, withdrawn: AbortSignal): Promise<unknown> | undefined {
    if (method === 'fs/read_text_file') return this.#bounded(() => this.#read(shapedAs(ReadTextFile, params)));
    if (method === 'fs/write_text_file')
      return this.#bounded(() => this.#write(shapedAs(WriteTextFile, params), withdrawn));
    return undefined;
  }

  /**
   * Finds the files that an allowed call may write. Called before the question, as the agent may change the call while people think.
   *
   * @returns a function that grants the writes
   */
  async prepareGrant(kind: string, paths: readonly string[]): Promise<() => void> {
    const { files, workspacePath, grants } = this.#options;
    if (kind !== 'edit') return () => {};
    const some = paths.slice(0, defaults.externalAgent.fileRequests);
    const found = await Promise.allSettled(some.map((path) => files.locate(workspacePath, path)));
    return () => {
      // A path out of bounds is granted to no one.
      for (const each of found) if (each.status === 'fulfilled') grants.add(each.value);
    };
  }

  /** Resolves when all writes have ended. */
  async end(): Promise<void> {
    this.#ended.abort();
    await Promise.allSettled(this.#writing);
  }

  /** Refuses an agent that asks faster than it is answered. */
  async #bounded<T>(answer: () => Promise<T>): Promise<T> {
    if (this.#requests >= defaults.externalAgent.fileRequests) refuse('Too many requests for files wait already.');
    this.#requests += 1;
    try {
      return await answer();
    } catch (error) {
      if (!(error instanceof DelegateFileError)) throw error;
      const words = plainText(error.message).slice(0, defaults.externalAgent.errorChars);
      throw error.isMissing
        ? new JsonRpcError({ code: notFound, message: `Resource not found: ${words}` })
        : invalidParams(words);
    } finally {
      this.#requests -= 1;
    }
  }

  /** Reads files one after the other: each holds its whole file. */
  #read({ path, line, limit }: v.InferOutput<typeof ReadTextFile>): Promise<{ readonly content: string }> {
    const { files, workspacePath, report } = this.#options;
    const answer = this.#reading.then(async () => {
      const real = await files.locate(workspacePath, path);
      this.#mustRun();
      const call = { callId: `file_${randomUUID()}`, tool: 'ReadFile', arguments: { path: real } };
      const decision = await report.ask({ call, need: undefined, isOurs: true });
      if (decision === 'decline' || decision === 'cancel') refuse(`${path} must not be read.`);
      const content = await files.read(workspacePath, real, { line: line ?? undefined, limit: limit ?? undefined });
      this.#mustRun();
      return { content };
    });
    this.#reading = answer.catch(() => {});
    return answer;
  }

  async #write(
    { path: given, content }: v.InferOutput<typeof WriteTextFile>,
    withdrawn: AbortSignal,
  ): Promise<Record<string, never>> {
    const { files, workspacePath, grants, report } = this.#options;
    const path = await files.locate(workspacePath, given);
    this.#mustRun();
    const isGranted = grants.covers(path);
    const call = { callId: `file_${randomUUID()}`, tool: 'WriteFile', arguments: { path, content } };
    // A granted write belongs to a call that is shown already.
    if (!isGranted) report.begin(call);
    const finish = (outcome: 'completed' | 'declined' | 'cancelled' | 'failed', text: string) => {
      if (!isGranted) report.end(call.callId, { outcome, text });
    };
    const decision = await report.ask({ call, need: this.#need(path), isOurs: true, isGranted }, withdrawn);
    if (decision === 'decline' || decision === 'cancel') {
      finish(withdrawn.aborted ? 'cancelled' : 'declined', '');
      refuse(`${given} must not be written.`);
    }
    try {
      this.#mustRun();
      await this.#tracked(files.write(workspacePath, path, content, AbortSignal.any([this.#ended.signal, withdrawn])));
    } catch (error) {
      finish('failed', error instanceof Error ? error.message : '');
      this.#mustRun();
      throw error;
    }
    finish('completed', '');
    return {};
  }

  #need(path: string) {
    const { agent } = this.#options;
    return {
      ...({ kind: 'file', operation: 'write', target: path } as const),
      scopeKey: `file:write:${path}`,
      covers: `writing and editing the file ${path}`,
      reason: `${agent} asks.`,
    };
  }

  async #tracked(work: Promise<void>): Promise<void> {
    this.#writing.add(work);
    try {
      await work;
    } finally {
      this.#writing.delete(work);
    }
  }

  #mustRun(): void {
    if (this.#ended.signal.aborted) refuse('The turn has ended.');
  }
}

function refuse(problem: string): never {
  throw invalidParams(plainText(problem).slice(0, defaults.externalAgent.errorChars));
}
