import { readdirSync } from 'node:fs';
import * as v from 'valibot';
import { outgoingFetch } from '../../http/index.ts';
import { defaults } from '../defaults.ts';
import { checkFullName, inDirectory, isSameRepository, type Repository, type StackConfig } from '../files/index.ts';
import type { StackLayout } from '../stack/index.ts';

const Reported = v.object({ full_name: v.string() });
const mostBytes = 1_048_576;

/**
 * The repository in the spelling that the forge reports: `octo/app` for `Octo/App`. A private repository, or a forge that does not
 * answer, leaves the given spelling.
 */
export async function asReported(
  repository: Repository,
  endpoint: string | null,
  { signal }: { readonly signal: AbortSignal },
): Promise<Repository> {
  const url = `${(endpoint ?? 'https://api.github.com').replace(/\/+$/, '')}/repos/${repository.fullName}`;
  try {
    const either = AbortSignal.any([signal, AbortSignal.timeout(defaults.timeouts.httpMs)]);
    const response = await outgoingFetch(url, { headers: { 'user-agent': 'oratorio' }, signal: either });
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for await (const chunk of response.body ?? []) {
      bytes += chunk.length;
      if (bytes > mostBytes) return repository;
      chunks.push(chunk);
    }
    const reported = v.safeParse(Reported, JSON.parse(Buffer.concat(chunks).toString('utf8')));
    const checked = checkFullName(reported.success ? reported.output.full_name : '');
    // A renamed repository is another one: its operator names it again.
    return 'repository' in checked && isSameRepository(checked.repository, repository)
      ? checked.repository
      : repository;
  } catch {
    return repository;
  }
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
