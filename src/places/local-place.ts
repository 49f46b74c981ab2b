import type { Handle, ProcessIdentity } from '../protocol/index.ts';
import {
  type AdoptOptions,
  adoptManaged,
  isAlive,
  type Liveness,
  type ManagedProcess,
  type SpawnOptions,
  spawnManaged,
} from '../supervise/index.ts';
import type { Place, PlacedProcess } from './place.ts';

/** Process of this machine that an earlier Hub started. */
export interface LocalSearch extends AdoptOptions {
  readonly identity: ProcessIdentity;
}

/** Process of this machine with its identity. */
export type LocalProcess = ManagedProcess & PlacedProcess;

const placed = (process: ManagedProcess): LocalProcess => ({
  ...process,
  handle: { kind: 'process', ...process.identity },
});

/** Runs agent servers as processes of this machine. */
export class LocalPlace implements Place<SpawnOptions, LocalSearch> {
  readonly kind = 'local';

  async check(): Promise<null> {
    return null;
  }

  /** @throws SpawnError */
  async start(options: SpawnOptions): Promise<LocalProcess> {
    return placed(await spawnManaged(options));
  }

  adopt({ identity, ...options }: LocalSearch): LocalProcess {
    return placed(adoptManaged(identity, options));
  }

  async find(search: LocalSearch): Promise<LocalProcess> {
    return this.adopt(search);
  }

  isAlive(handle: Handle): Liveness {
    return handle.kind === 'process' ? isAlive(handle) : 'unknown';
  }
}
