import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { commitFiles, Forge, type ForgePull, type ForgeRepository } from '../../review/forge/index.ts';
import { type BuiltHub, hubLog, makePlace, type Place, startHub, type Teardown } from '../harness.ts';
import { ReviewApi } from './api.ts';
import { startEntrance } from './entrance.ts';
import { EventReader, type IsNews } from './events.ts';
import { BackendProcess } from './process.ts';
import { type KnownFault, Reviewer } from './reviewer.ts';

export interface SceneOptions {
  /** Files on `main` before the first pull request. */
  readonly files: Readonly<Record<string, string>>;
  readonly faults: readonly KnownFault[];
  /** Sections of the backend's settings that differ from those below. */
  readonly settings?: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  /** Replicas; more than one need PostgreSQL. */
  readonly replicas?: number;
  /** Connection string of PostgreSQL; absent: SQLite. */
  readonly connectionString?: string;
  readonly isInstalled?: boolean;
  /** Makes the workspace of the route. Default: a clone of the forge's repository, trusted, with the address of the model. */
  readonly checkout?: (place: Place, reviewer: Reviewer) => string;
}

type Look<T> = () => Promise<T | undefined | false> | T | undefined | false;

/** A forge, a model, a Hub with the agent server of one workspace, and the backends: each but the first two in processes. */
export interface Scene {
  readonly place: Place;
  readonly forge: Forge;
  readonly repo: ForgeRepository;
  readonly reviewer: Reviewer;
  readonly hub: BuiltHub;
  readonly workspace: string;
  readonly backends: readonly BackendProcess[];
  /** API of the first backend. */
  readonly api: ReviewApi;
  readonly events: EventReader;
  /** Commits to a branch, which is made from `main` when it is not there. */
  commit(branch: string, files: Readonly<Record<string, string | null>>): Promise<string>;
  openPull(
    number: number,
    files: Readonly<Record<string, string | null>>,
    own?: Partial<ForgePull>,
  ): Promise<ForgePull>;
  /**
   * Looks again whenever the backend or the forge has something new, until there is something.
   *
   * @param isNews - events after which to look; default: every event of the backend, and every request to the forge
   */
  until<T>(what: string, look: Look<T>, isNews?: IsNews): Promise<T>;
}

const owner = 'acme';
const name = 'shop';
const secret = 'secret of the webhook';
const deadlineMs = 180_000;
/** Events come in bursts: one look for all of them spares the backend most of its work. */
const burstMs = 120;

/** Everything is ended with the test. */
export async function startScene(t: Teardown, options: SceneOptions): Promise<Scene> {
  const place = makePlace(t, 'oratorio-review-');
  const forge = await new Forge().start();
  t.teardown(() => forge.stop());
  const repo = await forge.addGitRepository(owner, name, options.files);
  if (options.isInstalled === false) forge.uninstall(owner);
  const reviewer = await new Reviewer(options.faults).start(t);
  const workspace = options.checkout?.(place, reviewer) ?? makeCheckout(place, repo, reviewer);
  const configFile = writeSettings(place, forge, workspace, options);
  const hub = await startHub(place);
  const { connectionString = '', replicas = 1 } = options;
  const env = {
    Oratorio__GitHub__WebhookSecret: secret,
    ...(connectionString && { Oratorio__Storage__ConnectionString: connectionString }),
  };
  const backends: BackendProcess[] = [];
  for (let at = 1; at <= replicas; at += 1) {
    backends.push(await BackendProcess.start(place, `backend${at}`, { configFile, env }));
  }
  const [first] = backends;
  if (!first) throw new Error('There is no backend');
  const entrance =
    replicas === 1
      ? first.url
      : await startEntrance(
          t,
          backends.map(({ url }) => url),
        );
  forge.app.hook = { url: `${entrance}/api/v1/sources/github/webhook`, secret, contentType: 'json' };
  const token = () => first.token;
  const api = new ReviewApi(first.url, token);
  const events = new EventReader(first.url, token);
  t.teardown(async () => {
    events.close();
    await Promise.all(backends.map((backend) => backend.end('SIGTERM')));
    if (forge.mistakes.length > 0) throw new Error(`The forge did not answer as GitHub does: ${forge.mistakes[0]}`);
  });
  const branches = new Set(['main']);
  const commit: Scene['commit'] = async (branch, files) => {
    const { gitDirectory = '' } = repo;
    const from = branches.has(branch) ? branch : 'main';
    branches.add(branch);
    return commitFiles(gitDirectory, branch, files, { from });
  };
  return {
    ...{ place, forge, repo, reviewer, hub, workspace, backends, api, events, commit },
    async openPull(number, files, own = {}) {
      const headRef = own.headRef ?? `change-${number}`;
      await commit(headRef, files);
      return forge.openPull(repo, { number, ...own, headRef });
    },
    until: (what, look, isNews) =>
      until({ events, forge, what, look, isNews, logs: () => logsOf(place, backends, api) }),
  };
}

/** Creates the checkout that the route names, as its owner would clone it. */
function makeCheckout(place: Place, { gitDirectory = '' }: ForgeRepository, reviewer: Reviewer): string {
  const workspace = place.workspace(name, {
    EndPoint: reviewer.url,
    ApiKey: 'sk-of-the-reviews',
    Model: 'mock-model',
    UpstreamRetries: 0,
  });
  const git = (...args: string[]) => execFileSync('git', args, { cwd: workspace, env: place.env, stdio: 'pipe' });
  git('init', '--quiet', '--initial-branch=main');
  git('fetch', '--quiet', gitDirectory, 'main');
  git('reset', '--quiet', '--hard', 'FETCH_HEAD');
  return workspace;
}

function writeSettings(place: Place, forge: Forge, workspace: string, { settings = {} }: SceneOptions): string {
  const keyFile = join(place.root, 'app.pem');
  writeFileSync(keyFile, forge.app.privateKey, { mode: 0o600 });
  const defaults: Record<string, Record<string, unknown>> = {
    GitHub: {
      Endpoint: forge.apiUrl,
      GitEndpoint: forge.url,
      AppId: forge.app.id,
      PrivateKeyPath: keyFile,
      Repositories: [`${owner}/${name}`],
      WritesEnabled: true,
    },
    AgentServer: {
      RepositoryWorkspaceRoutes: [{ Project: `${owner}/${name}`, WorkspacePath: workspace }],
      RetryBackoffSeconds: 1,
    },
    Automation: { AutoReviewRepositories: ['*'], AutoReviewPublishEnabled: true },
    Review: {},
  };
  const sections = new Set([...Object.keys(defaults), ...Object.keys(settings)]);
  const merged = [...sections].map((section) => [section, { ...defaults[section], ...settings[section] }]);
  const file = join(place.root, 'oratorio.config.json');
  writeFileSync(file, JSON.stringify({ Oratorio: Object.fromEntries(merged) }, null, 2), { mode: 0o600 });
  return file;
}

interface Wait<T> {
  readonly events: EventReader;
  readonly forge: Forge;
  readonly what: string;
  readonly look: Look<T>;
  readonly isNews: IsNews | undefined;
  readonly logs: () => Promise<string>;
}

async function until<T>({ events, forge, what, look, isNews, logs }: Wait<T>): Promise<T> {
  const deadline = Date.now() + deadlineMs;
  for (;;) {
    const news = nextNews(events, forge, isNews);
    // A backend that is down just now cannot be asked.
    const found = await Promise.resolve(look()).catch((error: unknown) => {
      if (error instanceof TypeError) return undefined;
      throw error;
    });
    if (found !== undefined && found !== false) {
      news.cancel();
      return found;
    }
    if (Date.now() > deadline) throw new Error(`did not happen: ${what}\n${await logs()}`);
    await news.come;
    await sleep(burstMs);
  }
}

/** Something happened that is news; at the latest after two seconds. */
function nextNews(events: EventReader, forge: Forge, isNews: IsNews | undefined) {
  const { promise: come, resolve } = Promise.withResolvers<void>();
  const timer = setTimeout(resolve, 2_000);
  const leave = isNews
    ? [events.on((event) => (!event || isNews(event)) && resolve())]
    : [events.on(() => resolve()), forge.onRequest(resolve)];
  const cancel = () => {
    clearTimeout(timer);
    for (const each of leave) each();
    resolve();
  };
  void come.then(cancel);
  return { come, cancel };
}

async function logsOf(place: Place, backends: readonly BackendProcess[], api: ReviewApi): Promise<string> {
  const state = await Promise.all([api.runs(), api.writes()]).catch((error: unknown) => String(error));
  return [
    JSON.stringify(state, null, 1),
    ...backends.map(({ log }) => log.slice(-8_000)),
    hubLog(place).slice(-2_000),
  ].join('\n----\n');
}
