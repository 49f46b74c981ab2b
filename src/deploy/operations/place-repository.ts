import { readdirSync } from 'node:fs';
import * as v from 'valibot';
import { outgoingFetch } from '../../http/index.ts';
import { defaults } from '../defaults.ts';
import { checkFullName, inDirectory, isSameRepository, type Repository, type StackConfig } from '../files/index.ts';
import { type AppClientOptions, createAppClient, readInstallation } from '../github/index.ts';
import type { StackLayout } from '../stack/index.ts';

const Reported = v.object({ full_name: v.string() });
const mostBytes = 1_048_576;

/** Where a spelling is looked up. */
export interface SpellingSource {
  /** `GitHub.Endpoint`; null: github.com. */
  readonly endpoint: string | null;
  /** The App, which sees private repositories; null: only public ones are found. */
  readonly app: { readonly appId: string; readonly privateKey: string } | null;
}

/**
 * The repository in the spelling that the forge reports: `octo/app` for `Octo/App`. The given spelling stays when neither the public
 * nor the App sees the repository, or when the forge does not answer.
 */
export async function asReported(
  repository: Repository,
  { endpoint, app }: SpellingSource,
  { signal }: { readonly signal: AbortSignal },
): Promise<Repository> {
  const base = (endpoint ?? 'https://api.github.com').replace(/\/+$/, '');
  const reported =
    (await publicName(`${base}/repos/${repository.fullName}`, signal).catch(() => undefined)) ??
    (app && (await nameForApp(repository, { ...app, endpoint: base, signal }).catch(() => undefined)));
  const checked = checkFullName(reported ?? '');
  // A renamed repository is another one: its operator names it again.
  return 'repository' in checked && isSameRepository(checked.repository, repository) ? checked.repository : repository;
}

async function publicName(url: string, signal: AbortSignal): Promise<string | undefined> {
  const either = AbortSignal.any([signal, AbortSignal.timeout(defaults.timeouts.httpMs)]);
  const response = await outgoingFetch(url, { headers: { 'user-agent': 'oratorio' }, signal: either });
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.length;
    if (bytes > mostBytes) return undefined;
    chunks.push(chunk);
  }
  const reported = v.safeParse(Reported, JSON.parse(Buffer.concat(chunks).toString('utf8')));
  return reported.success ? reported.output.full_name : undefined;
}

async function nameForApp(
  { fullName }: Repository,
  app: Omit<AppClientOptions, 'timeoutMs'>,
): Promise<string | undefined> {
  const options = { ...app, timeoutMs: defaults.timeouts.httpMs };
  const installation = await readInstallation(createAppClient(options), fullName);
  if (installation === null) return undefined;
  const [owner = '', repo = ''] = fullName.split('/');
  const client = createAppClient({ ...options, installationId: installation.id });
  return (await client.get('/repos/{owner}/{repo}', Reported, { owner, repo })).data.full_name;
}

/** The repository with its checkout where it is: by its route, else by a directory of another spelling. */
export function placed(repository: Repository, layout: StackLayout, config: StackConfig | null): Repository {
  const route = config?.repositories.find((each) => each.repository.toLowerCase() === repository.key)?.workspacePath;
  const [, routed] = /^\/workspace\/([^/]+)$/.exec(route ?? '') ?? [];
  return inDirectory(repository, routed ?? directoryOf(repository, layout));
}

function directoryOf({ directory }: Repository, { workspace }: StackLayout): string {
  const names = namesIn(workspace);
  if (names.includes(directory)) return directory;
  return names.find((name) => name.toLowerCase() === directory.toLowerCase()) ?? directory;
}

function namesIn(directory: string): readonly string[] {
  try {
    return readdirSync(directory);
  } catch {
    // A stack without a workspace yet has no checkout.
    return [];
  }
}
