import { type ActorRefFrom, type AnyActorRef, createActor, fromCallback } from 'xstate';
import {
  type McpConnectionCommand,
  type McpConnectionEvent,
  type McpConnectionInput,
  type McpServerPolicy,
  mcpServerMachine,
} from '../../machines/index.ts';
import { filesOfServer } from '../config/index.ts';
import { plainText } from '../lib/index.ts';
import type { Logger } from '../log/index.ts';
import { defaults, type McpServerSettings, type McpServerStatus, mcpStartupStates } from '../protocol/index.ts';
import { monotonicMs } from '../supervise/index.ts';
import { Connection } from './connection.ts';
import type { FailureCode } from './failure.ts';
import type { Tool as ServerTool } from './library.ts';
import { LoginSession, serverAddress, usesLogin } from './oauth/index.ts';
import type { Environment } from './open-link.ts';
import { type ServerSecrets, secretsOf } from './secrets.ts';

/** Time as XState wants it; a test may bring its own. */
export interface Clock {
  setTimeout(fn: () => void, ms: number): unknown;
  clearTimeout(id: unknown): void;
}

export interface ServerOptions {
  readonly name: string;
  readonly settings: McpServerSettings;
  readonly workspacePath: string;
  /** The user's home of Oratorio, which has the log-ins. */
  readonly home: string;
  readonly env: Environment;
  readonly logger: Logger;
  readonly policy: Omit<McpServerPolicy, 'startupTimeoutMs'>;
  readonly clock?: Clock | undefined;
  /** Called with the actor before it starts. */
  readonly observe?: ((actor: AnyActorRef) => void) | undefined;
  /** Called when the status or the tools may have changed. */
  readonly onChange: () => void;
}

type State = ReturnType<ActorRefFrom<typeof mcpServerMachine>['getSnapshot']>;

/** One configured server under supervision: its root actor and, in this process only, the connection and its secrets. */
export class McpServer {
  readonly name: string;
  readonly settings: McpServerSettings;
  readonly secrets: ServerSecrets;
  /** Why the last connection ended, for programs. */
  endCode: FailureCode | undefined;
  readonly #options: ServerOptions;
  readonly #files: ReturnType<typeof filesOfServer>;
  readonly #session: LoginSession | undefined;
  readonly #actor: ActorRefFrom<typeof mcpServerMachine>;
  #connection: Connection | undefined;
  #isOlderEra = false;
  #stopped: Promise<void> | undefined;

  constructor(options: ServerOptions) {
    const { name, settings, env } = options;
    this.name = name;
    this.settings = settings;
    this.#session = usesLogin(settings)
      ? new LoginSession({ name, home: options.home, server: serverAddress(settings) })
      : undefined;
    this.secrets = secretsOf(settings, env, this.#session?.clean);
    this.#files = filesOfServer(settings, options.workspacePath);
    this.#options = options;
    this.#actor = createActor(
      mcpServerMachine.provide({
        actors: { connection: this.#connectionActor(), loginWatch: this.#loginWatchActor() },
      }),
      {
        id: `mcp:${name}`,
        input: {
          name,
          transport: settings.transport,
          policy: { ...options.policy, startupTimeoutMs: settings.startupTimeoutSec * 1000 },
          seed: Math.trunc(Math.random() * 2 ** 31),
        },
        ...(options.clock && { clock: options.clock }),
      },
    );
    this.#actor.subscribe({
      next: () => options.onChange(),
      error: (error) => options.logger.error('the supervisor of an MCP server has failed', { server: name, error }),
    });
    options.observe?.(this.#actor);
    this.#actor.start();
  }

  get state(): McpServerStatus['startupState'] {
    const snapshot = this.#actor.getSnapshot();
    return mcpStartupStates.find((state) => snapshot.hasTag(state)) ?? 'stopped';
  }

  /** The connection of a server that is ready. */
  get connection(): Connection | undefined {
    return this.state === 'ready' ? this.#connection : undefined;
  }

  get tools(): readonly ServerTool[] {
    return this.connection?.tools ?? [];
  }

  get lastError(): string | null {
    return this.#actor.getSnapshot().context.lastError;
  }

  status(): McpServerStatus {
    const { facts, transport } = this.#actor.getSnapshot().context;
    const problems = (facts?.toolProblems ?? []).map(({ tool, problem, isOffered }) => ({
      tool: sayable(tool, this.secrets),
      problem: sayable(problem, this.secrets),
      isOffered,
    }));
    return {
      name: this.name,
      enabled: this.settings.enabled,
      startupState: this.state,
      toolCount: facts?.toolCount ?? 0,
      ...(problems.length > 0 && { toolProblems: problems }),
      resourceCount: facts?.resourceCount ?? 0,
      resourceTemplateCount: facts?.resourceTemplateCount ?? 0,
      lastError: this.lastError,
      transport,
      ...(facts?.serverName != null && { serverName: facts.serverName }),
      ...(facts?.serverVersion != null && { serverVersion: facts.serverVersion }),
      ...(facts?.protocolVersion != null && { protocolVersion: facts.protocolVersion }),
    };
  }

  /** Asks for it; at rest it is connected to, else nothing happens. */
  start(): void {
    this.#actor.send({ type: 'SERVER.START' });
  }

  /** Resolves when it is ready, or at rest because it could not become so. */
  async settled(): Promise<void> {
    await this.#until((snapshot) => snapshot.matches('ready') || snapshot.hasTag('atRest'));
  }

  /** Stops it for good. Resolves when nothing of it is left, or when it survived SIGKILL, which is logged. */
  stop(): Promise<void> {
    this.#stopped ??= this.#stop();
    return this.#stopped;
  }

  async #stop(): Promise<void> {
    this.#actor.send({ type: 'SERVER.STOP' });
    await this.#until((snapshot) => snapshot.hasTag('atRest') || snapshot.matches({ stopping: 'stuck' }));
    if (this.#actor.getSnapshot().hasTag('atRest')) this.#actor.stop();
    else this.#options.logger.error('an MCP server cannot be ended', { server: this.name, problem: this.lastError });
  }

  /** Resolves at the first snapshot for which this is so, or when there will be no other. */
  #until(isSo: (snapshot: State) => boolean): Promise<void> {
    return new Promise((resolve) => {
      const isOver = (snapshot: State) => snapshot.status !== 'active' || isSo(snapshot);
      if (isOver(this.#actor.getSnapshot())) return resolve();
      const subscription = this.#actor.subscribe({
        next(snapshot) {
          if (!isOver(snapshot)) return;
          subscription.unsubscribe();
          resolve();
        },
        error: () => resolve(),
        complete: resolve,
      });
    });
  }

  /** The actor behind the machine's `loginWatch`: reports a stored token that the server has not refused. */
  #loginWatchActor() {
    const { logger, name: server } = this.#options;
    return fromCallback(({ sendBack }) => {
      try {
        return this.#session?.watch(() => sendBack({ type: 'LOGIN.STORED' }));
      } catch (error) {
        logger.warn('log-ins cannot be watched; restart the agent server after a log-in', { server, error });
        return undefined;
      }
    });
  }

  /** The actor behind the machine's `connection`: reports the events of one incarnation and obeys the machine's commands. */
  #connectionActor() {
    const { settings, secrets } = this;
    const { workspacePath, env, logger, name: server } = this.#options;
    return fromCallback<McpConnectionCommand, McpConnectionInput>(({ input: { incarnation }, receive, sendBack }) => {
      const report = (event: McpConnectionEvent): void => sendBack(event);
      const connection = new Connection({
        serverName: this.name,
        settings,
        workspacePath,
        env,
        files: this.#files,
        session: this.#session,
        isOlderEra: this.#isOlderEra,
        onSpawned: (pid) => report({ type: 'CONNECTION.SPAWNED', incarnation, pid }),
        onReady: (facts) => report({ type: 'CONNECTION.READY', incarnation, facts, at: monotonicMs() }),
        onChanged: (facts) => report({ type: 'CONNECTION.CHANGED', incarnation, facts }),
        onLost: () => report({ type: 'CONNECTION.LOST', incarnation }),
        onOlderEra: () => {
          this.#isOlderEra = true;
        },
        onEnd: ({ code, error, output, isRetryable }) => {
          this.endCode = code;
          const said = { error: sayable(error, secrets), output: secrets.clean(output) };
          const end = { ...said, isRetryable, needsLogin: code === 'needsLogin' };
          report({ type: 'CONNECTION.CLOSED', incarnation, ...end, at: monotonicMs() });
        },
        onTrouble: (what, error) => {
          const problem = error instanceof Error ? sayable(error.message, secrets) : undefined;
          logger.debug(`an MCP server: ${what}`, { server, problem });
        },
      });
      this.#connection = connection;
      const obey = {
        CLOSE: () => connection.close(),
        TERMINATE: () => connection.terminate(),
        KILL: () => connection.kill(),
      };
      receive((command) => obey[command.type]());
    });
  }
}

/** Words of a server or of the system, short, without secrets and without control characters. */
const sayable = (text: string, { clean }: ServerSecrets): string =>
  clean(plainText(text)).slice(0, defaults.mcp.errorChars);
