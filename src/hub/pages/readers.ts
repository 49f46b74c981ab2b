import * as v from 'valibot';
import { isAtRest } from '../../../machines/index.ts';
import { Config, secretsIn, usableConfig } from '../../config/index.ts';
import type { Viewer } from '../../dashboard/index.ts';
import { hostAndPort } from '../../lib/index.ts';
import { dashboardToken, watchedDashboardTokens } from '../../supervise/index.ts';
import type { HubServices } from '../facts.ts';
import type { Workspace } from '../workspace.ts';
import type { Target } from './target.ts';

const host = '127.0.0.1';
const defaultConfig = v.parse(Config, {});

/** An open reader, or one that is being opened. */
interface Reader {
  readonly viewer: Promise<Viewer>;
  readonly target: Promise<Target>;
}

export type ReadersOptions = Pick<HubServices, 'home' | 'environment' | 'logger'>;

/**
 * Read-only dashboards of workspaces without a running agent server, from their databases. The first request opens a dashboard, and the
 * start of the workspace closes it.
 */
export class Readers {
  readonly #options: ReadersOptions;
  readonly #open = new Map<Workspace, Reader>();

  constructor(options: ReadersOptions) {
    this.#options = options;
  }

  /** The reader of a workspace; undefined while its agent server runs, starts, ends or is about to be restarted. */
  targetOf(workspace: Workspace): Promise<Target> | undefined {
    if (!isAtRest(workspace.snapshot())) return undefined;
    return (this.#open.get(workspace) ?? this.#start(workspace)).target;
  }

  async close(): Promise<void> {
    await Promise.all([...this.#open.keys()].map((workspace) => this.#end(workspace)));
  }

  #start(workspace: Workspace): Reader {
    const { home } = this.#options;
    const viewer = this.#view(workspace);
    const token = dashboardToken(home, workspace.path);
    const target = viewer.then(({ port }) => ({
      origin: `http://${hostAndPort({ host, port })}`,
      ...{ host, port, token },
      // The reader runs in this process, so it needs no proof.
      confirm: () => {},
      doubt: () => {},
    }));
    const reader = { viewer, target };
    this.#open.set(workspace, reader);
    const subscription = workspace.actor.subscribe((snapshot) => {
      if (isAtRest(snapshot)) return;
      subscription.unsubscribe();
      void this.#end(workspace);
    });
    target.catch(() => {
      subscription.unsubscribe();
      this.#open.delete(workspace);
    });
    return reader;
  }

  async #view({ path, facts }: Workspace): Promise<Viewer> {
    const { home, environment, logger } = this.#options;
    const { openViewer } = await import('../../dashboard/index.ts');
    const config = usableConfig({ home, workspace: path, env: environment });
    return openViewer({
      ...{ workspacePath: path, home, env: environment, logger },
      // Only the Hub sends requests to the reader.
      config: { ...config, DashBoard: defaultConfig.DashBoard },
      secrets: secretsIn(config),
      tokens: watchedDashboardTokens(home, path),
      address: { host, port: 0 },
      takesAnyPort: false,
      isHistoryOptional: true,
      agent: facts.stored.report?.agent ?? null,
    });
  }

  async #end(workspace: Workspace): Promise<void> {
    const reader = this.#open.get(workspace);
    this.#open.delete(workspace);
    try {
      await (await reader?.viewer)?.close();
    } catch (error) {
      this.#options.logger.warn('could not close the reader of a workspace', { workspacePath: workspace.path, error });
    }
  }
}
