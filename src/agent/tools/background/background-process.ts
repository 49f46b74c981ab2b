import { type ActorRefFrom, type AnyActorRef, createActor, fromCallback, fromPromise } from 'xstate';
import {
  type BackgroundProcessEvent,
  type BackgroundStopper,
  backgroundProcessMachine,
  type EndedTree,
  type EndTreeInput,
} from '../../../../machines/index.ts';
import type { BackgroundProcessInfo } from '../../../protocol/index.ts';
import type { WholeText } from '../exec/kept-output.ts';
import type { OutputReaders, ProcessDriver } from './command-driver.ts';
import { UnreadOutput } from './unread-output.ts';

export interface BackgroundProcessOptions {
  /** Different for each process of the server. */
  readonly id: string;
  readonly threadId: string;
  /** Command that the model wrote. */
  readonly command: string;
  readonly secrets: readonly string[];
  /** Most characters of one reading. */
  readonly maxChars: number;
  /** Takes in all output. */
  readonly file: WholeText | undefined;
  readonly driver: (readers: OutputReaders) => ProcessDriver;
  /** Start of a process that an earlier server has started, and the characters of its output that were read. */
  readonly earlier?: { readonly startedAt: string; readonly readChars: number } | undefined;
  /** Called after a reading, with the number of all characters read so far. */
  readonly onRead?: ((chars: number) => void) | undefined;
  /** Called with the actor before it starts. */
  readonly observe?: ((actor: AnyActorRef) => void) | undefined;
}

/** A command that runs in the background of a conversation: its actor and its output. */
export class BackgroundProcess {
  readonly id: string;
  readonly threadId: string;
  readonly command: string;
  readonly output: UnreadOutput;
  /** Resolves when nothing of it runs any more. */
  readonly ended: Promise<void>;
  readonly #startedAt: string;
  readonly #driver: ProcessDriver;
  readonly #actor: ActorRefFrom<typeof backgroundProcessMachine>;

  constructor(options: BackgroundProcessOptions) {
    const { id, threadId, command, secrets, maxChars, file, observe, earlier, onRead } = options;
    this.id = id;
    this.threadId = threadId;
    this.command = command;
    this.#startedAt = earlier?.startedAt ?? new Date().toISOString();
    this.output = new UnreadOutput({ secrets, maxChars, file, readChars: earlier?.readChars ?? 0, onRead });
    const driver = options.driver({
      onText: (text) => this.output.push(text),
      onSkip: () => this.output.skip(),
      onEnd: () => this.output.close(),
    });
    this.#driver = driver;
    this.#actor = createActor(
      backgroundProcessMachine.provide({
        actors: {
          command: fromCallback<BackgroundProcessEvent>(({ sendBack }) => driver.start(sendBack)),
          endTree: fromPromise<EndedTree, EndTreeInput>(({ input }) => driver.endTree(input.isPolite)),
        },
      }),
      { id: `process:${id}`, input: { processId: id, threadId } },
    );
    observe?.(this.#actor);
    this.ended = new Promise((resolve) => {
      this.#actor.subscribe({
        complete: () => {
          this.output.close();
          resolve();
        },
      });
    });
    this.#actor.start();
  }

  /** False when nothing of it runs any more. */
  get isRunning(): boolean {
    return this.#actor.getSnapshot().status === 'active';
  }

  get info(): BackgroundProcessInfo {
    const { value, context } = this.#actor.getSnapshot();
    const { pid, exitCode, signal, lastError } = context;
    return {
      ...{ id: this.id, command: this.command, state: value, startedAt: this.#startedAt },
      ...(pid !== null && { pid }),
      ...(exitCode !== null && { exitCode }),
      ...(signal !== null && { signal }),
      ...(lastError !== null && { lastError }),
    };
  }

  /** Writes to its standard input. @returns false: it does not read any more */
  write(text: string): boolean {
    return this.isRunning && this.#driver.write(text);
  }

  /** Ends it. The first stop counts. */
  stop(by: BackgroundStopper): Promise<void> {
    if (this.isRunning) this.#actor.send({ type: 'PROCESS.STOP', by });
    return this.ended;
  }
}
