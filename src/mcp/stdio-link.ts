import { once } from 'node:events';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { LineSplitter, PacedReading } from '../lib/index.ts';
import { defaults } from '../protocol/index.ts';
import {
  isPermanentSpawnError,
  type PipedExit,
  PipedProcess,
  type PipedProcessOptions,
  SpawnError,
} from '../supervise/index.ts';
import { McpFailure } from './failure.ts';
import type { JSONRPCMessage, ReadBuffer, Transport } from './library.ts';
import type { Link, LinkEnd } from './link.ts';
import type { ListReview } from './list-review.ts';
import { MessagePace, UnreadAnswers } from './message-pace.ts';

const lineEnd = Buffer.from('\n');

/**
 * The stdio transport of the protocol (revision 2025-11-25, "stdio"; unchanged in 2026-07-28): one JSON message a line.
 * The library has one too, but its processes have no group of their own, so their children would outlive them.
 */
class StdioTransport implements Transport {
  onclose?: () => void;
  onerror?: (error: Error) => void;
  onmessage?: NonNullable<Transport['onmessage']>;
  readonly pid: number;
  /** With both present the library knows that this is a pipe: silence of an older server is then no outage. */
  readonly stderr = null;
  readonly #process: PipedProcess;
  readonly #parser: ReadBuffer;
  readonly #lists: ListReview;
  readonly #lines = new LineSplitter({
    maxBytes: defaults.mcp.messageBytes,
    longer: 'cut',
    onLine: (line, isCut) => {
      if (isCut) this.#isFlooded = true;
      else this.#take(line);
      this.#fresh += 1;
    },
  });
  readonly #onFlood: (problem: string) => void;
  readonly #reading = new PacedReading(defaults.reading.busyMs);
  readonly #pace = new MessagePace();
  readonly #unread: UnreadAnswers;
  /** Messages of the present chunk. */
  #fresh = 0;
  #isFlooded = false;
  #isClosed = false;
  #drained: Promise<unknown> | undefined;

  constructor(process: PipedProcess, { parser, lists }: MessageReaders, fail: (end: LinkEnd) => void) {
    this.#process = process;
    this.#unread = new UnreadAnswers(fail);
    this.#onFlood = (message) => fail({ code: 'protocol', message, isRetryable: true });
    this.#parser = parser;
    this.#lists = lists;
    this.pid = process.pid;
  }

  async start(): Promise<void> {
    const { output, input } = this.#process;
    output.on('data', (chunk: Buffer) => this.#read(chunk));
    for (const stream of [output, input]) stream.on('error', (error) => this.onerror?.(error));
  }

  /** Resolves when the pipe has taken the message, also when it never will: then the end of the process is the failure. */
  async send(message: JSONRPCMessage): Promise<void> {
    const { input, exited } = this.#process;
    if (this.#isClosed || !input.writable) throw new Error('the server takes no more messages');
    this.#lists.sent(message);
    if (input.write(`${JSON.stringify(message)}\n`)) return;
    // A broken pipe means that the process ends: its exit says more.
    this.#drained ??= Promise.race([once(input, 'drain').catch(() => exited), exited]).finally(() => {
      this.#drained = undefined;
    });
    await ('method' in message ? this.#drained : this.#unread.during(this.#drained));
  }

  async close(): Promise<void> {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#process.input.end();
    this.onclose?.();
  }

  #read(chunk: Buffer): void {
    if (this.#isClosed) return;
    const { messageBytes } = defaults.mcp;
    const { output } = this.#process;
    this.#fresh = 0;
    this.#reading.run(output, () => this.#lines.add(chunk));
    const restMs = this.#pace.spend(this.#fresh);
    if (restMs > 0) this.#reading.rest(output, restMs);
    this.#isFlooded ||= this.#lines.unfinishedBytes > messageBytes;
    if (this.#isFlooded) this.#onFlood(`It sent a message of more than ${messageBytes / 1_048_576} MiB.`);
  }

  /** Lines that are not JSON are skipped: servers print greetings. */
  #take(line: Buffer): void {
    try {
      this.#parser.append(line);
      this.#parser.append(lineEnd);
      const message = this.#parser.readMessage();
      if (message) this.onmessage?.(this.#lists.received(message));
    } catch (error) {
      // JSON, but no message: the next line may be one.
      this.onerror?.(error as Error);
    }
  }
}

/** Readers of the server's messages. */
interface MessageReaders {
  /** Reads one line at a time: its own way of collecting them copies a long one with every piece that comes. */
  readonly parser: ReadBuffer;
  readonly lists: ListReview;
}

/** @throws McpFailure when the process does not start */
export async function openStdioLink(options: ServerProcessOptions, readers: MessageReaders): Promise<Link> {
  const process = await startServer(options);
  let isAsked = false;
  let failed: LinkEnd | undefined;
  const transport = new StdioTransport(process, readers, fail);
  function fail(end: LinkEnd): void {
    failed ??= end;
    process.kill();
  }

  /** A process that cannot hear or answer any more is of no use, even if it lives. */
  const breakOff = (stream: string) => async () => {
    await sleep(defaults.mcp.drainMs);
    // Where this process was held up meanwhile, the exit may be waiting to be heard of: that says more.
    await nextTurn();
    fail({ code: 'exited', message: `It closed its standard ${stream}.`, isRetryable: true });
  };
  process.output.once('end', breakOff('output'));
  process.input.once('error', breakOff('input'));

  async function watch(): Promise<LinkEnd | undefined> {
    const exit = await process.exited;
    const end = isAsked ? undefined : (failed ?? endOf(exit));
    // The last output may still be in the pipe; a child with the other end must not block the end.
    await Promise.race([once(process.output, 'end').catch(() => {}), sleep(defaults.mcp.drainMs)]);
    await transport.close();
    await process.gone;
    return end;
  }

  return {
    transport,
    pid: process.pid,
    output: () => process.stderr(defaults.mcp.quotedStderrChars),
    close() {
      isAsked = true;
      void transport.close();
    },
    terminate() {
      isAsked = true;
      process.terminate();
    },
    kill() {
      isAsked = true;
      process.kill();
    },
    fail,
    gone: watch(),
  };
}

export type ServerProcessOptions = Omit<PipedProcessOptions, 'stderrBytes' | 'sweepGraceMs'>;

async function startServer(options: ServerProcessOptions): Promise<PipedProcess> {
  const { stderrBytes, sweepGraceMs } = defaults.mcp;
  try {
    return await PipedProcess.start({ ...options, stderrBytes, sweepGraceMs });
  } catch (error) {
    if (!(error instanceof SpawnError)) throw error;
    const isRetryable = !isPermanentSpawnError(error.code);
    throw new McpFailure('notStarted', error.message, { cause: error, isRetryable });
  }
}

function endOf({ code, signal }: PipedExit): LinkEnd {
  return { code: 'exited', message: `It exited (${signal ?? `code ${code ?? 'unknown'}`}).`, isRetryable: true };
}
