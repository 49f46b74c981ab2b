import { type ActorRefFrom, type AnyActorRef, createActor, fromCallback } from 'xstate';
import {
  type ExternalAgentCommand,
  type ExternalAgentPolicy,
  type ExternalAgentProcessInput,
  externalAgentMachine,
} from '../../machines/index.ts';
import type { Delegate, DelegatedOrder, DelegateOffers } from '../agent/index.ts';
import { messageOf } from '../lib/index.ts';
import type { Logger } from '../log/index.ts';
import { approvalsOfAgent } from '../protocol/index.ts';
import { ProcessRecord } from '../supervise/index.ts';
import { Connection } from './connection.ts';
import { AgentFailure } from './failure.ts';
import { type AgentSettings, clientCapabilities, Sessions } from './sessions.ts';
import type { Dialect } from './telemetry/dialects.ts';
import { AgentExport } from './telemetry/exported.ts';

export interface ExternalAgentOptions extends AgentSettings {
  /** The whole environment of the agent's process except the marker. */
  readonly env: Readonly<Record<string, string>>;
  /** Our own marker: the agent's marker begins with it. */
  readonly parentMarker: string | undefined;
  /** See `Connection`. */
  readonly worker: RegExp | undefined;
  readonly workspacePath: string;
  /** Directory for files of the processes below it, which outlive this process. */
  readonly records: string;
  /** Form of the agent's telemetry; undefined: the agent is not asked to export any. Called at each start. */
  readonly dialect: () => Dialect | undefined;
  /** Removes a secret from everything that is written from now on. */
  readonly protect: (secret: string) => void;
  readonly policy: ExternalAgentPolicy;
  readonly logger: Logger;
  /** Called with the actor before it starts. */
  readonly observe?: ((actor: AnyActorRef) => void) | undefined;
}

type Actor = ActorRefFrom<typeof externalAgentMachine>;
type State = ReturnType<Actor['getSnapshot']>;

const usableOrDown = (snapshot: State): boolean =>
  snapshot.hasTag('usable') || snapshot.hasTag('down') || snapshot.hasTag('atRest');

/** The external agent that does the turns of a workspace: one process, whose sessions are threads. */
export class ExternalAgent implements Delegate {
  readonly name: string;
  readonly #options: ExternalAgentOptions;
  readonly #actor: Actor;
  readonly #sessions: Sessions;
  #connection: Connection | undefined;
  /** Turns without an end. */
  #runs = 0;
  /** Threads for whose next turn the agent was started. */
  readonly #prepared = new Set<string>();

  constructor(options: ExternalAgentOptions) {
    this.name = options.name;
    this.#options = options;
    this.#sessions = new Sessions(options, (event) => this.#actor.send(event));
    this.#actor = createActor(
      externalAgentMachine.provide({ actors: { process: this.#processActor(), watch: this.#watchActor() } }),
      {
        id: `agent:${options.name}`,
        input: { name: options.name, policy: options.policy, seed: Math.trunc(Math.random() * 2 ** 31) },
      },
    );
    this.#actor.subscribe({
      error: (error) => options.logger.error('the supervisor of an agent has failed', { agent: options.name, error }),
    });
    options.observe?.(this.#actor);
    this.#actor.start();
  }

  prepare(threadId: string): void {
    this.#prepared.add(threadId);
    this.#actor.send({ type: 'AGENT.WANTED' });
  }

  async run(order: DelegatedOrder, signal: AbortSignal) {
    this.#runs += 1;
    try {
      const connection = await this.#usable(order.threadId, signal);
      return await this.#sessions.run(connection, order, signal);
    } finally {
      this.#runs -= 1;
    }
  }

  offers(): DelegateOffers {
    return this.#sessions.offers;
  }

  forget(threadId: string): void {
    this.#prepared.delete(threadId);
    this.#sessions.forget(threadId);
  }

  endThread(threadId: string): void {
    this.forget(threadId);
    // A turn may run that has no session yet.
    if (this.#runs === 0 && this.#sessions.isEmpty) this.#actor.send({ type: 'AGENT.UNNEEDED' });
  }

  /** Facts for health and records. */
  describe() {
    const snapshot = this.#actor.getSnapshot();
    const { facts, lastError, pid } = snapshot.context;
    const [state] = typeof snapshot.value === 'string' ? [snapshot.value] : Object.keys(snapshot.value);
    const { name } = this.#options;
    const version = facts?.version ?? null;
    const approvals = approvalsOfAgent(name);
    return { kind: 'acp' as const, name, version, state: state ?? 'absent', approvals, pid, lastError };
  }

  /** Resolves when no process of the agent is left, or when one survived SIGKILL, which is logged. */
  async close(): Promise<void> {
    this.#actor.send({ type: 'AGENT.STOP' });
    const { name, logger } = this.#options;
    await this.#until((snapshot) => snapshot.hasTag('atRest') || snapshot.matches({ stopping: 'stuck' }));
    if (this.#actor.getSnapshot().hasTag('atRest')) this.#actor.stop();
    else logger.error('an agent cannot be ended', { agent: name });
  }

  /** Starts the agent unless it runs or was started for this turn. @throws AgentFailure agentUnavailable */
  async #usable(threadId: string, signal: AbortSignal): Promise<Connection> {
    signal.throwIfAborted();
    const isStarted = this.#prepared.delete(threadId) && !this.#isAway;
    // A turn starts the agent once: a start that has failed since is the turn's failure.
    if (!isStarted) this.#actor.send({ type: 'AGENT.WANTED' });
    await this.#until((snapshot) => usableOrDown(snapshot), signal);
    signal.throwIfAborted();
    const snapshot = this.#actor.getSnapshot();
    if (snapshot.hasTag('usable') && this.#connection) return this.#connection;
    const { name, installHint } = this.#options;
    const why = snapshot.context.lastError ?? 'It was stopped.';
    throw new AgentFailure(
      'agentUnavailable',
      [`The agent ${name} cannot be used. ${why}`, installHint].join(' ').trim(),
    );
  }

  /** Whether the process was ended on purpose, or is about to be. */
  get #isAway(): boolean {
    const snapshot = this.#actor.getSnapshot();
    return snapshot.matches('absent') || snapshot.matches('retiring');
  }

  /** Resolves at the first snapshot for which `isSo` holds, when there will be no other, or when `signal` aborts. */
  #until(isSo: (snapshot: State) => boolean, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const isOver = (snapshot: State) => snapshot.status !== 'active' || isSo(snapshot);
      if (isOver(this.#actor.getSnapshot())) return resolve();
      const settle = () => {
        subscription.unsubscribe();
        signal?.removeEventListener('abort', settle);
        resolve();
      };
      const subscription = this.#actor.subscribe({
        next: (snapshot) => isOver(snapshot) && settle(),
        error: settle,
        complete: settle,
      });
      signal?.addEventListener('abort', settle, { once: true });
    });
  }

  /** The actor behind the machine's `watch`. */
  #watchActor() {
    return fromCallback<ExternalAgentCommand, ExternalAgentProcessInput>(() => this.#connection?.watch());
  }

  #exportOf(incarnation: number): AgentExport | undefined {
    const { name: agent, dialect: dialectNow, logger, protect } = this.#options;
    const dialect = dialectNow();
    if (!dialect) return undefined;
    return new AgentExport({
      ...{ agent, dialect, logger, protect },
      take: (requests) => this.#sessions.addRequests(incarnation, requests),
      onClosed: () => this.#sessions.closeAccounts(incarnation),
    });
  }

  /** The actor behind the machine's `process`: reports the events of one incarnation and obeys the machine's commands. */
  #processActor() {
    const { name: agent, command, env, parentMarker, worker, workspacePath, records, logger } = this.#options;
    let hasProblem = false;
    const record = new ProcessRecord(records, (error) => {
      if (!hasProblem) logger.warn('the processes of an agent cannot be recorded', { agent, reason: messageOf(error) });
      hasProblem = true;
    });
    return fromCallback<ExternalAgentCommand, ExternalAgentProcessInput>(({ input, receive, sendBack }) => {
      const { incarnation } = input;
      const connection = new Connection({
        ...{ command, env, parentMarker, worker, incarnation, record },
        cwd: workspacePath,
        exported: this.#exportOf(incarnation),
        clientCapabilities,
        report: sendBack,
        onRequest: (method, params, signal) => this.#sessions.request(method, params, signal),
        onNotification: (...notice) => this.#sessions.notification(...notice),
        onBug: (error) => logger.bug(error),
      });
      this.#connection = connection;
      receive(({ type }) => (type === 'KILL' ? connection.kill() : connection.close()));
    });
  }
}
