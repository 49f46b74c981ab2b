import type { Readable, Writable } from 'node:stream';
import type { ModelProvider } from '../agent/index.ts';
import type { Engines } from '../checkpoints/index.ts';
import type { ListenAddress } from '../lib/index.ts';
import type { Logger } from '../log/index.ts';
import type { LaunchDocument, ModelInUse } from '../protocol/index.ts';
import type { FaceTools } from './offered-tools.ts';
import type { ProgramFile } from './program-file.ts';
import type { GeneratedKey } from './secrets.ts';
import type { Mode, MovedService, ServiceKey } from './services.ts';

export interface AppServerOptions {
  readonly workspacePath: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly logger: Logger;
  /** Settings from the Hub that started this process. Its ports and tokens override the configuration. */
  readonly launch?: LaunchDocument | undefined;
  /** Comes before the configured address. */
  readonly listen?: ListenAddress | undefined;
  /** Offered services; default: the ones of the Hub's launch document, or of the configuration. */
  readonly mode?: Exclude<Mode, 'managed'> | undefined;
  /** Model provider in place of the configured one, for programs that embed the server. */
  readonly provider?: () => Promise<ModelProvider>;
  /** Engines of checkpoints that servers of one process share; default: a thread for each server. */
  readonly checkpointEngines?: Engines;
  /** Program whose replacement makes a restart due; default: the program of this build. */
  readonly program?: ProgramFile;
}

/** Fate of unfinished turns when a server closes: suspended for the next server of the workspace, or cancelled. */
export type TurnsEnd =
  | { readonly kind: 'suspend'; readonly reason: Suspension; readonly withinMs: number }
  | { readonly kind: 'cancel' };

export type Suspension = 'restart' | 'stop' | 'upgrade';

/** A server that answers. */
export interface AppServer {
  readonly workspacePath: string;
  /** URL of the WebSocket, with its token. */
  readonly webSocketUrl: string;
  /** Base URL without a token; `/healthz` and `/readyz` are there. */
  readonly baseUrl: string;
  /** Addresses of the other services. */
  readonly endpoints: Readonly<Partial<Record<ServiceKey, string>>>;
  /** Services that listen on another port than asked for, because that one is taken. */
  readonly moved: readonly MovedService[];
  /** Key for other users of this machine, when a face without a configured key is served. A secret: as the token below. */
  readonly generatedKey: GeneratedKey | undefined;
  /** Opens the dashboard; absent without one. A secret: for the terminal of the user who started it. */
  readonly dashboardToken: string | undefined;
  /** Resolves when the server has agreed to sleep: it accepts no connection any more, and the caller closes it. */
  readonly asleep: Promise<void>;
  /** Speaks JSON-RPC on these two instead of a socket; resolves when the input ends. */
  serveStdio(input: Readable, output: Writable): Promise<void>;
  /** Model and tools, for people. */
  describe(): Promise<{ readonly model: ModelInUse } & FaceTools>;
  /**
   * Takes the order of the Hub for the turns of this server; without one, after a signal or a lost client, its turns are suspended.
   * The caller passes it to `close`.
   */
  handOver(): TurnsEnd;
  /**
   * Ends or suspends turns (their clients are notified), withdraws the address, closes every connection, releases the workspace.
   *
   * @param turns default: turns are cancelled
   */
  close(turns?: TurnsEnd): Promise<void>;
}
