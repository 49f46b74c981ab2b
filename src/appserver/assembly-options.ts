import type { AnyActorRef } from 'xstate';
import type { AdoptedSandboxes, ModelProvider, StoredThread } from '../agent/index.ts';
import type { Engines } from '../checkpoints/index.ts';
import type { Config, LoadedConfig } from '../config/index.ts';
import type { PinnedDirectory } from '../lib/index.ts';
import type { Logger } from '../log/index.ts';
import type { LaunchDocument, Turn } from '../protocol/index.ts';
import type { Observable, Observatory } from './observatory.ts';

export interface AssemblyOptions {
  /** Canonical. */
  readonly workspacePath: string;
  /** The workspace as the server opened it. */
  readonly workspace: PinnedDirectory;
  /** State directory of the workspace, below the home: the database is in it. */
  readonly stateDirectory: string;
  readonly config: Config;
  /** Settings of the files, which name a refused key's file. */
  readonly layers: LoadedConfig['layers'];
  /** Files of the workspace may run: its environment is prepared for commands. */
  readonly isTrusted: boolean;
  /** A Hub manages the server: commands may outlive it. */
  readonly isManaged: boolean;
  /** The server runs in a container, which is the sandbox of its commands. */
  readonly isContained?: boolean;
  /** Sandboxes of the server before this one. */
  readonly sandboxes: AdoptedSandboxes;
  /** The Hub's sidecar, when there is one: it takes the place of the configured upstream. */
  readonly upstream: LaunchDocument['upstream'];
  /** Name of this start. */
  readonly incarnation: string;
  /** Our environment, with the marker of this start: programs inherit from it. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Secrets that must not reach a tool, trace or prompt. */
  readonly secrets: readonly string[];
  readonly logger: Logger;
  /** Another model provider than the configured one. */
  readonly provider: (() => Promise<ModelProvider>) | undefined;
  readonly checkpointEngines: Engines | undefined;
  /** Sees the root actor of every turn, MCP server and automation before it starts. */
  readonly observe: (actor: AnyActorRef, observable: Observable) => void;
  /** Latest transitions of an observed actor, after a position. */
  readonly stepsOf: Observatory['stepsOf'];
  readonly onTurnEnd: (thread: StoredThread, turn: Turn) => void;
}
