/**
 * Syncs every repository of a forge that runs in another process, twice: the first time all is new, the second time nothing
 * has changed. Prints its figures as one line of JSON.
 *
 *     review-sync.ts REPOSITORIES PULLS
 */
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import * as v from 'valibot';
import { createLogger } from '../../src/log/index.ts';
import { GitHubSource } from '../../src/review/github/index.ts';
import { openReviewStore } from '../../src/review/store/index.ts';

const [count = 1_000, pulls = 100] = process.argv.slice(2, 4).map(Number);
const file = join(import.meta.dirname, 'review-forge.ts');
const flags = ['--disable-warning=ExperimentalWarning'];
const forge = spawn(process.execPath, [...flags, file, String(count), String(pulls)], {
  stdio: ['pipe', 'pipe', 'inherit'],
});
const Forge = v.object({ url: v.string(), appId: v.number(), privateKey: v.string() });
const [first = '{}'] = await new Promise<string[]>((resolve, reject) => {
  createInterface({ input: forge.stdout }).once('line', (line) => resolve([line]));
  forge.once('exit', () => reject(new Error('The forge ended')));
});
const { url, appId, privateKey } = v.parse(Forge, JSON.parse(first));

const directory = mkdtempSync(join(tmpdir(), 'oratorio-bench-sync-'));
const logger = createLogger({ name: 'bench', level: 'error' });
const store = await openReviewStore({ directory, owner: 'bench', logger });
const source = new GitHubSource({
  settings: { Endpoint: url, AppId: appId, PrivateKey: privateKey, PrivateKeyPath: '', InstallationProfiles: [] },
  store,
  logger,
});
await store.syncRepositories(
  Array.from({ length: count }, (_, at) => ({
    repositoryKey: `github:github.com/owner${at % 10}/repo${at}`,
    instance: 'github.com',
    owner: `owner${at % 10}`,
    name: `repo${at}`,
    autoReview: false,
  })),
);

async function cycle() {
  const from = performance.now();
  const before = source.requests;
  const found = { changed: 0, notModified: 0, failed: 0 };
  for await (const outcome of source.syncAll(await store.repositories())) {
    if ('error' in outcome) found.failed += 1;
    else {
      found.changed += outcome.result.changed;
      found.notModified += outcome.result.notModified;
    }
  }
  return { ms: performance.now() - from, requests: source.requests - before, ...found };
}

const fresh = await cycle();
const again = await cycle();
const memoryMiB = process.resourceUsage().maxRSS / 1_024;
source.close();
await store.close();
rmSync(directory, { recursive: true, force: true });
forge.stdin.end();
console.log(JSON.stringify({ fresh, again, memoryMiB }));
