/**
 * Content and source of `oratorio backend --demo`: a bundled repository with one pull request, and a stand-in for GitHub on this machine.
 * The pipeline behind it is the real one. Never here: the agent server, which the command line starts.
 */
import { generateKeyPairSync } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { writeFileAtomic } from '../../lib/index.ts';
import type { Logger } from '../../log/index.ts';
import { type Backend, startBackend } from '../backend/index.ts';
import { openReviewGit, removeTree } from '../git/index.ts';
import type { Environment } from '../settings/index.ts';
import { pull } from './bookshop.ts';
import { appId } from './pull.ts';
import { type DemoRepository, makeRepository } from './repository.ts';
import { type DemoSource, startDemoSource } from './source.ts';

export interface DemoOptions {
  /** Empty directory, on this machine only; it holds all files of the demo. */
  readonly directory: string;
  /** The bundled repository, made by `makeDemoRepository`. */
  readonly repository: DemoRepository;
  /** Address of the agent server of the checkout, with its token. */
  readonly agentServerUrl: string;
  readonly port: number;
  readonly env: Environment;
  readonly logger: Logger;
}

export interface Demo {
  readonly backend: Backend;
  /** Address of the pull request at the stand-in. */
  readonly pullUrl: string;
  readonly title: string;
  close(): Promise<void>;
}

export type { DemoRepository } from './repository.ts';
export { removeTree as removeDemo };

const owner = 'demo';
const name = 'bookshop';
const project = `${owner}/${name}`;

/** Makes the bundled repository with its checkout below `directory`. */
export const makeDemoRepository = (directory: string): Promise<DemoRepository> =>
  makeRepository(directory, owner, name);

/** Starts a review backend whose only source is the stand-in, and opens the pull request there. */
export async function startDemo(options: DemoOptions): Promise<Demo> {
  const { directory, repository, env, logger } = options;
  const source = await startDemoSource(repository, { owner, name, logger });
  try {
    const worktreeRoot = join(directory, 'worktrees');
    const configFile = join(directory, 'oratorio.config.json');
    writeFileAtomic(configFile, JSON.stringify(settingsOf(options, source, worktreeRoot)));
    await mkdir(join(directory, 'state'), { mode: 0o700 });
    const git = await openReviewGit({
      worktreeRoot,
      gitEndpoint: repository.gitEndpoint,
      allowFileProtocol: true,
      retention: { succeededMs: 0, failedMs: 0 },
    });
    const backend = await startBackend({
      ...{ configFile, stateDirectory: join(directory, 'state'), env, logger },
      overrides: { git },
    });
    try {
      await source.announce(backend.url);
    } catch (error) {
      await backend.close();
      throw error;
    }
    const close = async () => {
      await backend.close();
      await source.close();
    };
    return { backend, pullUrl: source.pull.url, title: pull.title, close };
  } catch (error) {
    await source.close();
    throw error;
  }
}

function settingsOf({ repository, agentServerUrl, port }: DemoOptions, source: DemoSource, worktreeRoot: string) {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 });
  return {
    Oratorio: {
      Server: { Port: port },
      GitHub: {
        Endpoint: source.endpoint,
        AppId: appId,
        PrivateKey: privateKey.export({ type: 'pkcs1', format: 'pem' }),
        WebhookSecret: source.webhookSecret,
        Repositories: [project],
        WritesEnabled: true,
      },
      AgentServer: {
        AppServerUrl: agentServerUrl,
        HubDiscoveryEnabled: false,
        WorktreeRoot: worktreeRoot,
        RepositoryWorkspaceRoutes: [{ Project: project, WorkspacePath: repository.checkout }],
      },
      // The draft waits for the user, who can try to publish it.
      Automation: { AutoReviewRepositories: [project], AutoReviewPublishEnabled: false },
    },
  };
}
