import { setTimeout as sleep } from 'node:timers/promises';
import * as v from 'valibot';
import type { ExternalAgentFacts, ExternalAgentProcessEvent } from '../../machines/index.ts';
import { LineSplitter, messageOf, PacedReading, plainText } from '../lib/index.ts';
import { defaults, type ProcessIdentity, version } from '../protocol/index.ts';
import { Peer, type PeerOptions, rpcCodes } from '../rpc/index.ts';
import {
  commandLine,
  isPermanentSpawnError,
  monotonicMs,
  PipedProcess,
  type ProcessRecord,
  SpawnError,
} from '../supervise/index.ts';
import { errorOfAgent, PeerClosedError } from './failure.ts';
import { InitializeResult } from './messages.ts';
import type { AgentExport } from './telemetry/exported.ts';

/** Version 1 exactly: some agents answer a higher version with a draft, and echo any number. */
const protocolVersion = 1;

export interface ConnectionOptions {
  /** Program and arguments. */
  readonly command: readonly string[];
  readonly cwd: string;
  /** The whole environment except the marker. */
  readonly env: Readonly<Record<string, string>>;
  readonly parentMarker: string | undefined;
  readonly incarnation: number;
  /** Matches the command line of the process that does the work, where it is not the agent's own. */
  readonly worker: RegExp | undefined;
  /** Where the processes below it are stored. */
  readonly record: ProcessRecord | undefined;
  /** Takes the agent's telemetry; undefined: the agent is not asked to export any. */
  readonly exported: AgentExport | undefined;
  readonly clientCapabilities: unknown;
  readonly report: (event: ExternalAgentProcessEvent) => void;
  /** Answers a request of the agent, until the agent withdraws it. */
  readonly onRequest: (method: string, params: unknown, signal: AbortSignal) => Promise<unknown>;
  readonly onNotification: NonNullable<PeerOptions['onNotification']>;
  readonly onBug: (error: unknown) => void;
}

/** One life of the agent's process and the conversation with it. Reports events to the machine, which decides. */
export class Connection {
  readonly peer: Peer;
  readonly incarnation: number;
  /** Set when the agent has answered `initialize`. */
  info: InitializeResult | undefined;
  readonly #options: ConnectionOptions;
  /** Sentence about the end of the agent, once it has exited. */
  exit: string | undefined;
  #process: PipedProcess | undefined;
  #isKilled = false;
  #isFlooded = false;
  /** Descendants of the agent that do its work, by identity. */
  readonly #workers = new Map<string, number>();
  #looks: Promise<void> = Promise.resolve();
  /** Whether another start may help. */
  #isRetryable = true;

  constructor(options: ConnectionOptions) {
    this.#options = options;
    this.incarnation = options.incarnation;
    this.peer = new Peer({
      send: (text) => this.#write(`${text}\n`),
      onRequest: async ({ method, params, signal }) => ({
        result: (await options.onRequest(method, params, signal)) ?? null,
      }),
      onNotification: options.onNotification,
      failureOf: (error) => {
        options.onBug(error);
        return { code: rpcCodes.internalError, message: 'Internal error' };
      },
      errorOf: errorOfAgent,
      cancel: { method: '$/cancel_request', answer: { code: -32_800, message: 'Request cancelled' } },
      // Some agents take 0 for a missing id.
      idOf: (number) => number + 1,
    });
    void this.#run().catch(options.onBug);
  }

  /** Polls the descendants until the returned function is called, which polls them a last time. */
  watch(): () => void {
    let isLooking = false;
    const timer = setInterval(() => {
      if (isLooking) return;
      isLooking = true;
      void this.#look().finally(() => {
        isLooking = false;
      });
    }, defaults.externalAgent.watchMs);
    void this.#look();
    return () => {
      clearInterval(timer);
      // Catches a process started since, and a worker ended since: a current read may have missed both.
      void this.#look();
    };
  }

  /** Polls the descendants once. Polls run one at a time, as each compares with the last. Never rejects. */
  #look(): Promise<void> {
    this.#looks = this.#looks
      .then(async () => this.#noteWorkers((await this.#process?.descendants?.poll()) ?? []))
      .catch(this.#options.onBug);
    return this.#looks;
  }

  /** Reports lost workers: an adapter outlives the process that does its work, and may never answer again. */
  #noteWorkers(living: readonly ProcessIdentity[]): void {
    const { worker, report } = this.#options;
    if (worker === undefined) return;
    const alive = new Map(living.map((each) => [`${each.pid} ${each.startedTicks}`, each]));
    for (const [key, pid] of this.#workers) {
      if (alive.has(key)) continue;
      this.#workers.delete(key);
      report({ type: 'WORKER.LOST', incarnation: this.incarnation, pid });
    }
    for (const [key, { pid }] of alive) {
      if (!this.#workers.has(key) && worker.test(commandLine(pid))) this.#workers.set(key, pid);
    }
  }

  /** Ends the agent's input: a well-behaved agent then exits. */
  close(): void {
    this.#process?.input.end();
  }

  kill(): void {
    this.#isKilled = true;
    this.#process?.kill();
  }

  /** Whether the agent has exported telemetry; undefined: no receiver is open. */
  get isExporting(): boolean | undefined {
    return this.#options.exported?.isExporting;
  }

  /** The end of the agent's standard error. */
  get stderr(): string {
    return this.#process?.stderr(defaults.externalAgent.quotedStderrChars) ?? '';
  }

  #withLastWords(sentence: string): string {
    return this.stderr === '' ? sentence : `${sentence}\n${this.stderr}`;
  }

  async #run(): Promise<void> {
    const { report, incarnation } = this.#options;
    try {
      this.#process = await this.#start();
    } catch (error) {
      this.peer.close(new PeerClosedError());
      await this.#options.exported?.close();
      const isRetryable = error instanceof SpawnError && !isPermanentSpawnError(error.code);
      report({ type: 'PROCESS.EXITED', incarnation, error: messageOf(error), isRetryable, at: monotonicMs() });
      report({ type: 'PROCESS.SWEPT', incarnation });
      return;
    }
    const process = this.#process;
    if (this.#isKilled) process.kill();
    report({ type: 'PROCESS.SPAWNED', incarnation, pid: process.pid });
    this.#read(process);
    void this.#introduce();
    const { code, signal } = await process.exited;
    // The agent's last words may still be in the pipe; a child that holds the other end must not keep us waiting.
    await Promise.race([process.closed, sleep(defaults.externalAgent.drainMs)]);
    this.exit = `It exited (${signal ?? `code ${code ?? 'unknown'}`}).`;
    this.peer.close(new PeerClosedError());
    const error = this.#withLastWords(this.exit);
    report({ type: 'PROCESS.EXITED', incarnation, error, isRetryable: this.#isRetryable, at: monotonicMs() });
    await process.gone;
    await this.#options.exported?.close();
    report({ type: 'PROCESS.SWEPT', incarnation });
  }

  async #start(): Promise<PipedProcess> {
    const { command, cwd, parentMarker, record, exported } = this.#options;
    const [program = '', ...args] = command;
    const env = { ...this.#options.env, ...(await exported?.open()) };
    const { stderrBytes, sweepGraceMs } = defaults.externalAgent;
    return PipedProcess.start({ command: program, args, cwd, env, parentMarker, stderrBytes, sweepGraceMs, record });
  }

  async #introduce(): Promise<void> {
    const { report, incarnation, clientCapabilities } = this.#options;
    try {
      const clientInfo = { name: 'oratorio', version };
      const answer = await this.peer.request('initialize', { protocolVersion, clientInfo, clientCapabilities });
      const info = v.parse(InitializeResult, answer);
      if (info.protocolVersion !== protocolVersion) {
        throw new Error(`It speaks version ${info.protocolVersion} of the protocol only.`);
      }
      this.info = info;
      report({ type: 'HANDSHAKE.DONE', incarnation, facts: factsOf(info), at: monotonicMs() });
    } catch (error) {
      if (error instanceof PeerClosedError) return;
      this.#isRetryable = false;
      const text = plainText(messageOf(error)).slice(0, defaults.externalAgent.errorChars);
      report({ type: 'HANDSHAKE.FAILED', incarnation, error: `It did not introduce itself: ${text}` });
    }
  }

  #read(process: PipedProcess): void {
    const { lineBytes } = defaults.externalAgent;
    const lines = new LineSplitter({
      maxBytes: lineBytes,
      longer: 'cut',
      onLine: (line, isCut) => {
        if (isCut) this.#flood('It wrote a line of more than 16 MiB.');
        else if (!this.#isFlooded) this.peer.receive(line.toString(), line.length);
      },
    });
    const reading = new PacedReading(defaults.reading.busyMs);
    process.output.on('data', (chunk: Buffer) => {
      reading.run(process.output, () => lines.add(chunk));
      if (lines.unfinishedBytes > lineBytes) this.#flood('It wrote a line of more than 16 MiB.');
    });
    process.output.once('end', () => void this.#breakOff());
    // The exit of the process reports its end.
    for (const stream of [process.output, process.input]) stream.on('error', () => {});
  }

  /** Ends an agent that can no longer be read: it is useless even if it lives. */
  async #breakOff(): Promise<void> {
    const isRunning = await Promise.race([
      this.#process?.exited.then(() => false),
      sleep(defaults.externalAgent.exitWaitMs, true, { ref: false }),
    ]);
    // The exit is reported with its code and the last words of the agent, which say more.
    if (isRunning) this.#flood(this.#withLastWords('It closed its standard output.'));
  }

  #write(line: string): void {
    const input = this.#process?.input;
    if (!input?.writable) return;
    input.write(line);
    if (input.writableLength > defaults.externalAgent.lineBytes) this.#flood('It does not read its input.');
  }

  #flood(error: string): void {
    if (this.#isFlooded) return;
    this.#isFlooded = true;
    this.#options.report({ type: 'OUTPUT.FLOODED', incarnation: this.incarnation, error });
  }
}

function factsOf({ agentInfo }: InitializeResult): ExternalAgentFacts {
  const bounded = (text: string | undefined) => (text === undefined ? null : plainText(text).slice(0, 200));
  return { name: bounded(agentInfo?.name), version: bounded(agentInfo?.version) };
}
