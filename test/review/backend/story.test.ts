/** The assembled backend against the forge: from a signed delivery to a review that begins. */
import { createHmac } from 'node:crypto';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { createLogger } from '../../../src/log/index.ts';
import type { ReviewAgent } from '../../../src/review/agent/index.ts';
import { GitError, type ReviewGit, type ReviewTarget } from '../../../src/review/git/index.ts';
import { startBackend } from '../../../src/review/index.ts';
import { Forge } from '../forge/index.ts';
import { files, quick } from '../github/harness.ts';

const secret = 'a secret of the story';

/** Git that has no such repository: the review ends there, and says so. */
class NoGit implements ReviewGit {
  readonly asked: ReviewTarget[] = [];
  prepare(target: ReviewTarget): Promise<never> {
    this.asked.push(target);
    return Promise.reject(new GitError('baseWorkspaceNotGitRepository', 'There is none'));
  }
  async verifyClean() {}
  async release() {}
  async clean() {
    return { removed: [], failed: [] };
  }
  async close() {}
}
const noAgent: ReviewAgent = {
  review: () => Promise.reject(new Error('nobody asks')),
  interrupt: async () => {},
  traceUrl: async () => undefined,
  status: async () => ({ state: 'reachable' }),
  close: async () => {},
};

async function scene(t: Test) {
  const forge = await new Forge().start();
  t.teardown(() => forge.stop());
  const repo = forge.addRepository('acme', 'shop');
  const home = mkdtempSync(join(tmpdir(), 'oratorio-story-'));
  t.teardown(() => rmSync(home, { recursive: true, force: true }));
  const workspace = join(home, 'shop');
  mkdirSync(workspace);
  const configFile = join(home, 'oratorio.config.json');
  const keyFile = join(home, 'app.pem');
  writeFileSync(keyFile, forge.app.privateKey, { mode: 0o600 });
  const configure = (more: object = {}) =>
    writeFileSync(
      configFile,
      JSON.stringify({
        Oratorio: {
          Server: { Port: 0 },
          GitHub: {
            ...{ Endpoint: forge.apiUrl, WebhookSecret: secret, Repositories: ['acme/shop'] },
            ...{ AppId: forge.app.id, PrivateKeyPath: keyFile },
            ...more,
          },
          AgentServer: { RepositoryWorkspaceRoutes: [{ Project: 'acme/shop', WorkspacePath: workspace }] },
          Automation: { AutoReviewRepositories: ['*'] },
        },
      }),
    );
  configure();
  const git = new NoGit();
  const log: string[] = [];
  const backend = await startBackend({
    ...{ configFile, stateDirectory: join(home, 'state'), env: {} },
    logger: createLogger({ name: 'test', level: 'debug', pretty: false, stream: { write: (line) => log.push(line) } }),
    overrides: { git, agent: noAgent, sourceLimits: quick },
  });
  t.teardown(() => backend.close());
  const ask = async (path: string, init: RequestInit = {}) =>
    (await fetch(`${backend.url}${path}`, { ...init, headers: { authorization: `Bearer ${backend.token()}` } })).json();
  const deliver = (event: string, body: object, id: string) => {
    const text = JSON.stringify(body);
    return fetch(`${backend.url}/api/v1/sources/github/webhook`, {
      method: 'POST',
      body: text,
      headers: {
        ...{ 'content-type': 'application/json', 'x-github-event': event, 'x-github-delivery': id },
        'x-hub-signature-256': `sha256=${createHmac('sha256', secret).update(text).digest('hex')}`,
      },
    });
  };
  const until = async <T>(look: () => Promise<T | undefined>): Promise<T> => {
    for (;;) {
      const found = await look();
      if (found !== undefined) return found;
      await pause(20);
    }
  };
  return { forge, repo, git, backend, ask, deliver, until, configure, log };
}

t.test('an opened pull request is synced, queued and reviewed, and its result is visible', async (t) => {
  const { forge, repo, git, ask, deliver, until, log } = await scene(t);
  await until(async () => ((await ask('/api/v1/sources'))[0]?.lastSyncAt === undefined ? undefined : true));
  // The baseline is a moment: a pull request opened after it is new.
  await pause(1_100);
  const pull = await forge.openPull(repo, { number: 7, files });
  const payload = { action: 'opened', repository: { full_name: 'acme/shop' }, pull_request: { number: 7 } };
  t.equal((await deliver('pull_request', payload, 'd-1')).status, 202);
  const run = await until(async () => {
    const { rows } = await ask('/api/v1/runs');
    return rows.find(({ state }: { state: string }) => state === 'failed');
  });
  t.match(run, { number: 7, trigger: 'auto', error: { code: 'baseWorkspaceNotGitRepository' } });
  t.match(git.asked, [{ number: 7, headSha: run.headSha, runId: run.runId }]);
  t.ok(pull);
  await until(async () => ((await ask('/api/v1/deliveries')).rows[0]?.outcome === 'queued' ? undefined : true));
  t.match((await ask('/api/v1/deliveries')).rows, [{ deliveryId: 'd-1', outcome: 'processed' }]);
  t.match(await ask('/api/v1/status'), { source: { state: 'ready' }, deadJobs: 0 });
  t.notMatch(log.join(''), secret);
});

t.test('regression: the inspection names the review runs of the process by their pull requests', async (t) => {
  const { forge, repo, backend, ask, deliver, until } = await scene(t);
  await forge.openPull(repo, { number: 7, files });
  const payload = { action: 'opened', repository: { full_name: 'acme/shop' }, pull_request: { number: 7 } };
  await deliver('pull_request', payload, 'd-1');
  const item = await until(async () => (await ask('/api/v1/items')).rows[0]);
  await ask(`/api/v1/items/${item.itemId}/dispatch`, { method: 'POST', body: '{}' });
  const controller = new AbortController();
  t.teardown(() => controller.abort());
  const stream = await fetch(`${backend.url}/api/v1/inspect`, {
    headers: { authorization: `Bearer ${backend.token()}` },
    signal: controller.signal,
  });
  let text = '';
  const decoder = new TextDecoder();
  for await (const chunk of stream.body ?? []) {
    text += decoder.decode(chunk);
    if (/event: actor[\s\S]*review-run[\s\S]*\n\n/.test(text)) break;
  }
  t.match(text, '"title":"acme/shop#7"');
});

t.test('changed credentials replace the source without a restart', async (t) => {
  const { ask, configure, until } = await scene(t);
  t.match(await ask('/api/v1/status'), { source: { state: 'ready' } });
  configure({ PrivateKeyPath: '', PrivateKey: 'no key' });
  await until(async () => ((await ask('/api/v1/status')).source.state === 'failed' ? true : undefined));
  configure();
  await until(async () => ((await ask('/api/v1/status')).source.state === 'ready' ? true : undefined));
  t.same((await ask('/api/v1/settings/diagnostics')).restartNeededFor, []);
});

t.test('a requested sync runs, and a second request joins one that has not begun', async (t) => {
  const { ask, until } = await scene(t);
  const init = { method: 'POST', body: '{}' };
  const asked = await ask('/api/v1/sources/sync-jobs', init);
  t.match(asked, { trigger: 'manual', status: 'queued' });
  const row = await until(async () => {
    const rows = await ask('/api/v1/sources/sync-jobs');
    return rows.find(
      (each: { jobId: string; status: string }) => each.jobId === asked.jobId && each.status === 'succeeded',
    );
  });
  t.match(row, { repositories: 1 });
});

t.test('regression: M6 a member with read permission cannot give commands, a writer can', async (t) => {
  const { forge, repo, ask, deliver, until } = await scene(t);
  await forge.openPull(repo, { number: 7, files });
  const payload = { action: 'opened', repository: { full_name: 'acme/shop' }, pull_request: { number: 7 } };
  await deliver('pull_request', payload, 'd-1');
  await until(async () => (await ask('/api/v1/items')).rows[0]);
  repo.collaborators.set('mallory', 'read');
  repo.collaborators.set('alice', 'write');
  const say = (id: string, login: string) => {
    const { id: commentId } = forge.comment(repo, 7, login, '@oratorio pause', 'MEMBER');
    const comment = {
      ...{ id: commentId, body: '@oratorio pause', author_association: 'MEMBER' },
      user: { login, type: 'User' },
    };
    const issue = { number: 7, pull_request: {} };
    return deliver('issue_comment', { action: 'created', repository: { full_name: 'acme/shop' }, issue, comment }, id);
  };
  const outcomeOf = (id: string) =>
    until(async () => {
      const { rows } = await ask('/api/v1/deliveries');
      const row = rows.find(({ deliveryId }: { deliveryId: string }) => deliveryId === id);
      return row === undefined || row.outcome === 'queued' ? undefined : row;
    });
  const isPaused = async () => (await ask('/api/v1/items')).rows[0].isPaused;
  t.equal((await say('by-reader', 'mallory')).status, 202);
  t.match(await outcomeOf('by-reader'), { outcome: 'rejected', reason: 'githubCommentCommandActorUnauthorized' });
  t.equal(await isPaused(), false);
  t.equal((await say('by-writer', 'alice')).status, 202);
  t.match(await outcomeOf('by-writer'), { outcome: 'processed' });
  t.equal(await isPaused(), true);
});
