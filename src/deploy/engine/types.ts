import type { StackLayout } from '../layout.ts';
import type { ServiceName } from '../stack-plan.ts';

export interface RunOptions {
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Each line of standard output and error, without secrets. */
  readonly onLine?: (line: string) => void;
  /** Standard input; absent: none. */
  readonly input?: string | Uint8Array;
  /** An open file in place of `input`, and one for standard output, whose bytes are written unchanged. */
  readonly inputFile?: number;
  readonly outputFile?: number;
  /** Values that no output shows. */
  readonly secrets?: readonly string[];
}

/** Output is bounded, and without the secrets that were named. */
export interface RunResult {
  readonly exitCode: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ServiceState {
  readonly service: ServiceName;
  readonly container: string;
  /** State from the engine: created, running, restarting, exited, … */
  readonly state: string;
  readonly health: 'healthy' | 'unhealthy' | 'starting' | 'none';
  readonly exitCode: number;
  readonly restarts: number;
  readonly isOutOfMemory: boolean;
  /** Composed reference, and the id of the running image. */
  readonly image: string;
  readonly imageId: string;
  /** ISO 8601, null when it never ran. */
  readonly startedAt: string | null;
  readonly ports: readonly { readonly host: string; readonly hostPort: number; readonly containerPort: number }[];
}

/** A container engine with a composition tool, both found and answering. */
export interface Engine {
  readonly runtime: { readonly kind: 'docker' | 'podman'; readonly version: string; readonly isRootless: boolean };
  readonly compose: { readonly version: string };
  /** Runs a command line of the engine, e.g. `['image', 'inspect', …]`. A failure is a result, not an error. */
  run(args: readonly string[], options: RunOptions): Promise<RunResult>;
  /**
   * The composition tool on a stack, with its project directory, `.env` and project name. `files` defaults to all
   * compositions that are there.
   */
  runCompose(
    stack: StackLayout,
    args: readonly string[],
    options: RunOptions & { readonly files?: readonly string[] },
  ): Promise<RunResult>;
}
