import { existsSync } from 'node:fs';
import * as v from 'valibot';
import { type ActorRefFrom, createActor, fromPromise, waitFor } from 'xstate';
import {
  type AttemptCheck,
  type AttemptTurn,
  type RaceAttemptInput,
  raceAttemptMachine,
} from '../../../machines/index.ts';
import {
  type ForkedThread,
  type ForkOptions,
  forkThread,
  JsonRpcError,
  joinTurn,
  type RunningTurn,
  startTurn,
  TurnFailedError,
  turnDiff,
} from '../../client/index.ts';
import { messageOf } from '../../lib/index.ts';
import { type RaceAttempt, rpcErrors } from '../../protocol/index.ts';
import { answerOf } from '../conversation.ts';
import type { LastingServer } from '../lasting-server.ts';
import { CheckError, type RunCheck } from './check.ts';
import type { AttemptChoice } from './options.ts';

/** Result of one attempt of a race. */
export interface AttemptResult extends AttemptChoice {
  readonly number: number;
  readonly threadId: string | null;
  /** Null: the attempt was not begun, and has no files. */
  readonly directory: string | null;
  /** State of its turn. */
  readonly status: 'completed' | 'stopped' | 'failed' | 'notStarted';
  readonly hasPassed: boolean;
  readonly failure: RaceAttempt['failure'] | null;
  readonly costUsd: number | null;
  readonly files: number;
  readonly additions: number;
  readonly deletions: number;
}

export interface AttemptOptions {
  readonly server: LastingServer;
  readonly number: number;
  /** Agent, by name, model and effort. */
  readonly choice: AttemptChoice;
  /** Whether an option names the agent; false: the agent of the workspace. */
  readonly isAgentNamed: boolean;
  /** Conversation that it copies. */
  readonly originalId: string;
  readonly displayName: string;
  readonly prompt: string;
  readonly check: string;
  readonly runCheck: RunCheck;
  readonly isUnattended: boolean;
  /** Ends the race, and a check that runs. */
  readonly signal: AbortSignal;
  /** Runs one copy after the other: each copies all files. */
  readonly inOrder: <T>(copy: () => Promise<T>) => Promise<T>;
  /** Called with an error that ends the race, such as an agent server that does not return. */
  readonly onFatal: (error: unknown) => void;
}

const Threads = v.looseObject({
  data: v.array(
    v.looseObject({
      id: v.string(),
      displayName: v.optional(v.string()),
      forkedFromThreadId: v.optional(v.string()),
      config: v.optional(v.looseObject({ workspaceOverride: v.optional(v.string()) })),
    }),
  ),
});
const Turns = v.looseObject({ thread: v.looseObject({ turns: v.array(v.looseObject({ id: v.string() })) }) });
const Usage = v.looseObject({
  thread: v.looseObject({
    turns: v.array(v.looseObject({ tokenUsage: v.optional(v.looseObject({ costUsd: v.optional(v.number()) })) })),
  }),
});
type Facts = Pick<AttemptResult, 'costUsd' | 'files' | 'additions' | 'deletions'>;
const noFacts: Facts = { costUsd: null, files: 0, additions: 0, deletions: 0 };
const messageChars = 2_000;
const unavailable = 'agentUnavailable';
/** Failure code of an attempt that ends with the race. */
const raceEnded = 'raceEnded';

/** Runs one attempt of a race as its machine says. */
export class Attempt {
  readonly #options: AttemptOptions;
  readonly #actor: ActorRefFrom<typeof raceAttemptMachine>;
  #threadId: string | null = null;
  #directory: string | null = null;
  #turn: RunningTurn | undefined;

  constructor(options: AttemptOptions) {
    this.#options = options;
    const machine = raceAttemptMachine.provide({
      actors: {
        open: fromPromise<void, RaceAttemptInput>(() => this.#reported(() => this.#open(), refusalOf)),
        work: fromPromise<AttemptTurn, RaceAttemptInput>(() => this.#reported(() => this.#work(), failureOf)),
        check: fromPromise<AttemptCheck, RaceAttemptInput>(() => this.#reported(() => this.#check(), failureOf)),
      },
      actions: { interruptTurn: () => this.#interrupt() },
    });
    this.#actor = createActor(machine, { input: { number: options.number } });
  }

  get threadId(): string | null {
    return this.#threadId;
  }

  /** Reports that another attempt has passed, or that the race has failed. */
  decided(): void {
    this.#actor.send({ type: 'RACE.DECIDED' });
  }

  /** @param onPassed called at once, before its result is read */
  async run(onPassed: () => void): Promise<AttemptResult> {
    this.#actor.start();
    const { value, context } = await waitFor(this.#actor, ({ status }) => status === 'done');
    if (value === 'passed') onPassed();
    const { number, choice } = this.#options;
    const failure = context.failure && { code: context.failure.code, message: context.failure.message };
    const state = value as RaceAttempt['state'];
    const end = failure ? { failure } : {};
    await this.#unlessGone(() => this.#record(state, end), undefined);
    const facts = await this.#unlessGone(() => this.#facts(), noFacts);
    // No program of the attempt writes any more once the changes are known.
    await this.#unlessGone(() => this.#record(state, { ...end, endedAt: new Date().toISOString() }), undefined);
    const status = failure ? (this.#turn ? 'failed' : 'notStarted') : state === 'stopped' ? 'stopped' : 'completed';
    return {
      ...{ number, ...choice, status, failure, hasPassed: state === 'passed' },
      ...{ threadId: this.#threadId, directory: this.#directory },
      ...facts,
    };
  }

  async #open(): Promise<void> {
    const { server, choice, isAgentNamed, signal, inOrder } = this.#options;
    const { agent, model, effort } = choice;
    await inOrder(async () => {
      if (this.#actor.getSnapshot().context.isDecided) return;
      const { threadId, directory } = await this.#copy({ worktree: true, signal, ...(isAgentNamed && { agent }) });
      this.#threadId = threadId;
      this.#directory = directory;
    });
    if (this.#threadId === null) return;
    const config = { ...(model !== '' && { model }), ...(effort !== '' && { effort }) };
    const params = { threadId: this.#threadId, config };
    await server.repeated((present) => present.request('thread/config/update', params, { signal }));
    await this.#record('working');
  }

  /** Copies the conversation of the race. An agent server that ended during the copy may have completed it. */
  #copy(options: Omit<ForkOptions, 'displayName'>): Promise<ForkedThread> {
    const { server, originalId, displayName } = this.#options;
    return server.once(
      (present) => forkThread(present, originalId, { ...options, displayName }),
      async (present) => {
        const { data } = v.parse(Threads, await present.request('thread/list', {}));
        for (const { id: threadId, forkedFromThreadId, displayName: name, config } of data) {
          const directory = config?.workspaceOverride ?? '';
          // The next start removes the directory of an unfinished copy.
          const isWhole = options.worktree !== true || existsSync(directory);
          if (forkedFromThreadId === originalId && name === displayName && isWhole) return { threadId, directory };
        }
        return undefined;
      },
    );
  }

  async #work(): Promise<AttemptTurn> {
    const { server, prompt, isUnattended, signal } = this.#options;
    const asked = isUnattended ? ({ approvalPolicy: 'autoApprove' } as const) : {};
    const threadId = this.#threadId ?? '';
    const turn = await server.once(
      (present) => startTurn(present, threadId, prompt, { ...asked, signal }),
      async (present) => {
        const params = { threadId, includeTurns: true, turnLimit: 1 };
        const [begun] = v.parse(Turns, await present.request('thread/read', params, { signal })).thread.turns;
        return begun && joinTurn(present, { threadId, turnId: begun.id });
      },
    );
    this.#turn = server.lasting(turn);
    // The race may have been decided during the request.
    if (this.#actor.getSnapshot().context.isDecided) this.#interrupt();
    const { cancelled } = await answerOf(this.#turn, signal, () => undefined);
    return { isCancelled: cancelled };
  }

  /** Runs the user's own command in the files of the attempt. */
  async #check(): Promise<AttemptCheck> {
    await this.#record('checking');
    const { runCheck, signal } = this.#options;
    const files = { directory: this.#directory ?? '', threadId: this.#threadId ?? '' };
    return { hasPassed: await runCheck(files, signal) };
  }

  #interrupt(): void {
    // The turn may have ended.
    void this.#turn?.interrupt().catch(() => undefined);
  }

  /** Records the state for the page. An attempt without files gets a conversation that names the reason. */
  async #record(state: RaceAttempt['state'], end: Pick<RaceAttempt, 'failure' | 'endedAt'> = {}): Promise<void> {
    const { server, number, check, choice } = this.#options;
    if (end.failure?.code === unavailable) {
      this.#threadId ??= (await this.#copy({})).threadId;
    }
    if (this.#threadId === null) return;
    const race: RaceAttempt = { number, check, state, agent: choice.agent, ...end };
    const params = { threadId: this.#threadId, config: { race } };
    await server.repeated((present) => present.request('thread/config/update', params));
  }

  /** Cost and changes, also of a turn that has failed. */
  async #facts(): Promise<Facts> {
    const { server, signal } = this.#options;
    if (this.#turn === undefined) return noFacts;
    const { threadId } = this.#turn;
    const params = { threadId, includeTurns: true, turnLimit: 1 };
    const [answer, { files }] = await server.repeated((present) =>
      Promise.all([
        present.request('thread/read', params, { signal }),
        turnDiff(present, threadId, { format: 'summary', signal }),
      ]),
    );
    const usage = v.safeParse(Usage, answer);
    return {
      costUsd: usage.success ? (usage.output.thread.turns.at(-1)?.tokenUsage?.costUsd ?? null) : null,
      files: files.length,
      additions: files.reduce((sum, { additions }) => sum + additions, 0),
      deletions: files.reduce((sum, { deletions }) => sum + deletions, 0),
    };
  }

  /** Tolerates errors of a deleted conversation; any other error ends the race. */
  async #unlessGone<T>(work: () => Promise<T>, otherwise: T): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof JsonRpcError)) this.#options.onFatal(error);
      return otherwise;
    }
  }

  /** @param codeOf code of an error that is a failure of this attempt; undefined: it ends the race */
  async #reported<T>(work: () => Promise<T>, codeOf: (error: unknown) => string | undefined): Promise<T> {
    try {
      return await work();
    } catch (error) {
      const code = codeOf(error);
      if (code === undefined) this.#options.onFatal(error);
      const message = messageOf(error).slice(0, messageChars);
      throw Object.assign(new Error(message, { cause: error }), { code: code ?? raceEnded });
    }
  }
}

/** Failure code for an unavailable agent; undefined for other errors of a copy, which concern all attempts. */
const refusalOf = (error: unknown): string | undefined =>
  error instanceof JsonRpcError && error.code === rpcErrors.agentUnavailable.code ? unavailable : undefined;

function failureOf(error: unknown): string | undefined {
  if (error instanceof TurnFailedError) return error.reason ?? error.code;
  if (error instanceof CheckError) return 'checkFailed';
  if (!(error instanceof JsonRpcError)) return undefined;
  return Object.entries(rpcErrors).find(([, { code }]) => code === error.code)?.[0] ?? 'internalError';
}
