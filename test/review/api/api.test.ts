/** The API over real sockets on a real store, with both HTTP servers, as a client and as an attacker would ask. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Validator } from '@seriousme/openapi-schema-validator';
import t, { type Test } from 'tap';
import * as v from 'valibot';
import { createInspectionSource, createRecorder, createStatelySource } from '../../../src/inspect/index.ts';
import {
  createReviewServer,
  observationRoutes,
  type ReviewActions,
  type ReviewRoute,
  reviewRoutes,
} from '../../../src/review/api/index.ts';
import { responseSchemas } from '../../../src/review/api/shapes.ts';
import { ReviewError } from '../../../src/review/errors.ts';
import { SettingsSource } from '../../../src/review/settings/index.ts';
import { hunksFact, ReviewStoreError, type StoredFinding } from '../../../src/review/store/index.ts';
import { WebhookIntake, webhookRoute } from '../../../src/review/webhook/index.ts';
import { type Adapter, exchange, rawRequest } from '../../http/support.ts';
import { claimed, facts, quiet, sqliteSubject, wanted, wishFor } from '../store/databases.ts';
import { headersOf, secret } from '../webhook/harness.ts';

const token = 'a-service-token-of-the-tests';

async function scene(t: Test, adapter: Adapter = 'uws') {
  const directory = mkdtempSync(join(tmpdir(), 'oratorio-api-'));
  t.teardown(() => rmSync(directory, { recursive: true, force: true }));
  const file = join(directory, 'oratorio.config.json');
  writeFileSync(
    file,
    JSON.stringify({ Oratorio: { GitHub: { Repositories: ['octo/hello'], WebhookSecret: secret } } }, null, 2),
  );
  const subject = sqliteSubject(t);
  const store = await subject.open();
  const settings = new SettingsSource({ place: { file, env: {}, stateRoot: directory }, logger: quiet });
  t.teardown(() => settings.close());
  await store.syncRepositories([wanted()]);
  const { item } = await store.upsertItem(facts(1));
  const actions: ReviewActions = {
    dispatch: (each, { scope, focus }) => store.enqueueRun(wishFor(each, { scope, focus })),
    async cancel(runId) {
      const run = await store.requestCancel(runId);
      if (!run) throw new ReviewError('notFound', 'Unknown review run.');
      return run;
    },
    traceUrl: async ({ threadId }) => (threadId === null ? undefined : `http://dashboard/#at=${threadId}`),
    publish: async () => {
      throw new ReviewError('githubWritesDisabled', 'Writes are off.');
    },
    async discard(draftId) {
      const draft = await store.draft(draftId);
      if (draft) await store.updateDraft(draftId, draft.version, { status: 'discarded' });
    },
    resolveFinding: async (findingId, resolution, note) => {
      await store.updateFinding(findingId, {
        isResolved: true,
        resolution,
        ...(note !== null && { resolutionNote: note }),
      });
    },
    async sync(repositoryKey) {
      const job = {
        trigger: 'manual',
        status: 'queued',
        repositories: 0,
        changedItems: 0,
        apiCalls: 0,
        notModified: 0,
      } as const;
      const whole = { jobId: 'sync-1', ...job, ...(repositoryKey !== undefined && { repositoryKey }) };
      await store.putSyncJob(whole);
      return { ...whole, createdAt: new Date(0).toISOString() };
    },
    retryWrite: (write) => store.updateWrite(write.writeId, { status: 'pending' }),
  };
  const intake = new WebhookIntake({ settings: () => settings.current, store, logger: quiet });
  t.teardown(() => intake.close());
  process.env['ORATORIO_HTTP_ADAPTER'] = adapter;
  t.teardown(() => delete process.env['ORATORIO_HTTP_ADAPTER']);
  const server = await createReviewServer({
    isOwn: () => true,
    ...{ store, settings, actions, logger: quiet, token: () => token, node: 'one', version: '1.2.3' },
    more: [webhookRoute({ intake }), ...observation(t)],
  });
  t.equal(server.http.adapter, adapter);
  const { port } = await server.http.listen({ host: '127.0.0.1', port: 0 });
  t.teardown(() => server.close());
  const ask = async (
    path: string,
    init: { method?: string; body?: unknown; headers?: Record<string, string> } = {},
  ) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: init.method ?? 'GET',
      headers: { authorization: `Bearer ${token}`, ...init.headers },
      ...(init.body !== undefined && { body: JSON.stringify(init.body) }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text === '' ? undefined : JSON.parse(text) };
  };
  const post = (path: string, body: unknown = {}) => ask(path, { method: 'POST', body });
  return { store, settings, item, port, ask, post, server };
}

/** Observation routes; these tests only check that they are served. */
function observation(t: Test) {
  const recorder = createRecorder();
  t.teardown(() => recorder.close());
  return observationRoutes({
    token: () => token,
    inspection: createInspectionSource(recorder),
    stately: createStatelySource(recorder, {}),
    charts: async () => [],
    metrics: async () => ({ contentType: 'text/plain', text: 'none 0\n' }),
  });
}

const routes: [string, ReviewRoute][] = Object.entries(reviewRoutes);
const pathOf = ({ path }: ReviewRoute) => path.replace(/:\w+/g, 'none');

t.test('an independent validator accepts the OpenAPI 3.1 document, which has every route', async (t) => {
  const { ask } = await scene(t);
  const { status, body } = await ask('/api/v1/openapi.json');
  t.equal(status, 200);
  const { valid, errors } = await new Validator().validate(structuredClone(body));
  t.equal(valid, true, JSON.stringify(errors));
  for (const [operation, { method, path }] of routes)
    t.equal(body.paths[path.replace(/:(\w+)/g, '{$1}')][method.toLowerCase()].operationId, operation);
  const references = new Set(
    [...JSON.stringify(body).matchAll(/"#\/components\/schemas\/([^"]+)"/g)].map(([, name]) => name),
  );
  const components = new Set(Object.keys(body.components.schemas));
  for (const name of references) t.ok(components.has(name ?? ''), `${name} is there`);
});

t.test('responses match the schemas of the document', async (t) => {
  const { ask, post, store, item } = await scene(t);
  const fits = (
    name: keyof typeof responseSchemas,
    { status, body }: Awaited<ReturnType<typeof ask>>,
    wanted = 200,
  ) => {
    t.equal(status, wanted, `${name}: ${JSON.stringify(body)}`);
    t.ok(v.is(responseSchemas[name], body), `${name} fits: ${JSON.stringify(body)}`);
    return body;
  };
  fits('Health', await ask('/health', { headers: { authorization: '' } }));
  t.match(fits('BackendStatus', await ask('/api/v1/status')), { webhookReady: true, storage: 'sqlite' });
  t.equal(fits('ItemPage', await ask('/api/v1/items?state=open&q=alice')).rows.length, 1);
  t.equal(fits('ItemPage', await ask('/api/v1/items?state=closed')).rows.length, 0);
  const path = `/api/v1/items/${item.itemId}`;
  fits('ItemDetail', await ask(path));
  t.match(fits('ReviewItem', await post(`${path}/pause`)), { isPaused: true });
  t.match(fits('ReviewItem', await post(`${path}/resume`)), { isPaused: false });
  const { run } = fits('DispatchResult', await post(`${path}/dispatch`, { focus: 'races' }), 202);
  t.match(fits('ReviewRun', await ask(`/api/v1/runs/${run.runId}`)), { focus: 'races', state: 'queued' });
  fits('RunPage', await ask(`/api/v1/runs?itemId=${item.itemId}&limit=1`));
  fits('ReviewItem', await post(`${path}/cancel`), 202);
  t.match((await ask(`/api/v1/runs/${run.runId}`)).body, { state: 'cancelled' });
  for (const each of ['/api/v1/sources', '/api/v1/sources/sync-jobs']) t.ok(Array.isArray((await ask(each)).body));
  fits('SyncJob', await post('/api/v1/sources/sync-jobs', { repositoryKey: item.repositoryKey }), 202);
  t.match(await post('/api/v1/sources/sync-jobs', { repositoryKey: 'github:github.com/a/b' }), { status: 404 });
  const write = await store.putWrite({
    ...{ kind: 'reply', dedupeKey: 'k', repositoryKey: item.repositoryKey, runId: null, request: {} },
  });
  t.match(await post(`/api/v1/source-writes/${write.writeId}/retry`), {
    status: 409,
    body: { error: { code: 'invalidState' } },
  });
  await store.updateWrite(write.writeId, { status: 'failed' });
  t.match(fits('SourceWrite', await post(`/api/v1/source-writes/${write.writeId}/retry`), 202), { status: 'pending' });
  fits('WritePage', await ask('/api/v1/source-writes'));
  fits('DeliveryPage', await ask('/api/v1/deliveries'));
  fits('SettingsView', await ask('/api/v1/settings/diagnostics'));
});

t.test('a draft changes only with the current version and while it is editable', async (t) => {
  const { ask, post, store, item } = await scene(t);
  await store.enqueueRun(wishFor(item));
  const { run, lease } = await claimed(store);
  const finding: StoredFinding = {
    ...{
      findingId: 'f1',
      draftId: 'd1',
      itemId: item.itemId,
      severity: 'major',
      kind: 'comment',
      title: 'T',
      body: 'B',
    },
    ...{ path: 'a.ts', side: 'RIGHT', placement: 'summary', fingerprint: 'x', status: 'accepted', isResolved: false },
    ...{ isPublished: false, warnings: [], commentId: null, threadNodeId: null, url: null },
  };
  await store.putDraft(lease, {
    ...{ draftId: 'd1', runId: run.runId, itemId: item.itemId, headSha: run.headSha, status: 'draft', summary: 'S' },
    ...{
      findings: [finding],
      reviewedFiles: 1,
      totalFiles: 1,
      skippedFiles: [],
      warnings: [],
      dropped: [],
      blockedBy: null,
    },
  });
  const path = '/api/v1/review-drafts/d1';
  const shown = await ask(path);
  const etag = shown.headers.get('etag') ?? '';
  t.ok(v.is(responseSchemas.ReviewDraft, shown.body), JSON.stringify(shown.body));
  t.equal(etag, `"${shown.body.version}"`);
  const edit = (headers: Record<string, string>, summary: unknown = 'new') =>
    ask(path, { method: 'PATCH', headers, body: { summary } });
  t.match(await edit({}), { status: 428, body: { error: { code: 'versionRequired' } } });
  t.match(await edit({ 'if-match': '"999"' }), { status: 412, body: { error: { code: 'versionStale' } } });
  t.match(await edit({ 'if-match': '*' }), { status: 412 });
  t.match(await edit({ 'if-match': etag }, 5), { status: 400, body: { error: { code: 'invalidRequest' } } });
  t.match(await edit({ 'if-match': etag }), { status: 200, body: { summary: 'new' } });
  t.match(await edit({ 'if-match': etag }), { status: 412 }, 'the same version once only');
  const findings = '/api/v1/findings';
  t.match(await ask(`${findings}/f1`, { method: 'PATCH', body: { status: 'skipped', title: ' N ' } }), {
    status: 200,
    body: { status: 'skipped', title: 'N' },
  });
  const reword = (match: string, title: string) =>
    ask(`${findings}/f1`, { method: 'PATCH', headers: { 'if-match': match }, body: { title } });
  const read = (await ask(path)).headers.get('etag') ?? '';
  const reworded = await reword(read, 'first');
  t.match(reworded, { status: 200, body: { title: 'first' } });
  const stale = { status: 412, body: { error: { code: 'versionStale' } } };
  t.match(await reword(read, 'second'), stale, 'two who have looked at the same do not overwrite one another');
  t.match(await reword('"999"', 'second'), stale);
  t.match(await reword('nonsense', 'second'), stale);
  t.equal(reworded.headers.get('etag'), (await ask(path)).headers.get('etag'), 'it tells the version of the draft');
  t.match(await reword(reworded.headers.get('etag') ?? '', 'second'), { status: 200, body: { title: 'second' } });
  const { updateFinding } = store;
  Object.assign(store, {
    updateFinding: async (...given: Parameters<typeof updateFinding>) => {
      await updateFinding('f1', { title: 'by another' });
      return updateFinding(...given);
    },
  });
  const between = await ask(`${findings}/f1`, { method: 'PATCH', body: { title: 'third' } });
  t.match(between, stale, 'nor do they in between reading and writing');
  Object.assign(store, { updateFinding });
  t.match((await ask(path)).body, { findings: [{ title: 'by another' }] });
  t.match(await ask(`${findings}/f1`, { method: 'PATCH', body: { newText: 'x' } }), { status: 409 });
  t.match(await post(`${findings}/f1/resolve`, { resolution: 'fixed' }), { status: 409 }, 'it is not published');
  await store.updateFinding('f1', { isPublished: true });
  t.match(await post(`${findings}/f1/resolve`, { resolution: 'dismissed', note: 'n' }), {
    status: 200,
    body: { isResolved: true },
  });
  t.match(await post(`${path}/publish`), { status: 403, body: { error: { code: 'githubWritesDisabled' } } });
  t.match(await post(`${path}/discard`), { status: 200, body: { status: 'discarded' } });
  t.match(await ask(`${findings}/f1`, { method: 'PATCH', body: { title: 'x' } }), {
    status: 409,
    body: { error: { code: 'invalidState' } },
  });
});

t.test('routes return the diff around the findings of a draft and the trace address of its run', async (t) => {
  const { ask, store, item } = await scene(t);
  await store.enqueueRun(wishFor(item));
  const { run, lease } = await claimed(store);
  const { runId, headSha } = run;
  await store.putDraft(lease, {
    ...{ draftId: 'd1', runId, itemId: item.itemId, headSha, status: 'draft', summary: 'S', findings: [] },
    ...{ reviewedFiles: 1, totalFiles: 1, skippedFiles: [], warnings: [], dropped: [], blockedBy: null },
  });
  const hunks = () => ask('/api/v1/review-drafts/d1/hunks');
  t.match(await hunks(), { status: 200, body: { hunks: {} } }, 'a draft need not have any');
  const lines = [
    { kind: 'context', oldLine: 3, newLine: 4, text: 'a' },
    { kind: 'added', newLine: 5, text: 'b' },
  ];
  const kept = { f1: { path: 'a.ts', oldStart: 3, newStart: 4, lines } };
  await store.setFact(hunksFact(runId), JSON.stringify(kept));
  const shown = await hunks();
  t.ok(v.is(responseSchemas.DraftHunks, shown.body));
  t.same(shown.body, { hunks: kept });
  await store.setFact(hunksFact(runId), '{"f1":{"path":1}}');
  t.match(await hunks(), { status: 200, body: { hunks: {} } }, 'what is not understood is not shown');
  t.match(await ask('/api/v1/review-drafts/none/hunks'), { status: 404, body: { error: { code: 'notFound' } } });

  const trace = () => ask(`/api/v1/runs/${runId}/trace`);
  t.match(await trace(), { status: 404, body: { error: { code: 'notFound', message: /^No trace/ } } });
  await store.updateRun(runId, lease, { threadId: 'thread_1' });
  const watched = await trace();
  t.ok(v.is(responseSchemas.RunTrace, watched.body));
  t.match(watched.body, { url: 'http://dashboard/#at=thread_1' });
  t.equal(watched.headers.get('cache-control'), 'no-store');
  t.match(await ask('/api/v1/runs/none/trace'), { status: 404, body: { error: { message: /Unknown run/ } } });
});

t.test('lists continue after the previous page and reject an invalid cursor', async (t) => {
  const { ask, store } = await scene(t);
  for (let number = 2; number <= 7; number += 1) await store.upsertItem(facts(number));
  const seen: number[] = [];
  let cursor = '';
  do {
    const { body } = await ask(`/api/v1/items?limit=3&cursor=${cursor}`);
    seen.push(...body.rows.map(({ number }: { number: number }) => number));
    cursor = body.next ?? '';
  } while (cursor !== '');
  t.same(seen, [7, 6, 5, 4, 3, 2, 1]);
  for (const query of ['limit=0', 'limit=201', 'limit=x', 'limit=1&limit=2', 'state=odd', `q=${'x'.repeat(1_001)}`])
    t.match(
      await ask(`/api/v1/items?${query}`),
      { status: 400, body: { error: { code: 'invalidRequest' } } },
      query.slice(0, 20),
    );
  t.match(await ask('/api/v1/items?cursor=nonsense'), { status: 400, body: { error: { code: 'invalidCursor' } } });
});

t.test('settings: 409 for a stale revision, 400 for an invalid value, 403 when they are read-only', async (t) => {
  const { ask, settings } = await scene(t);
  const put = (set: object, baseRevision = settings.loaded.revision) =>
    ask('/api/v1/settings/server-configuration', { method: 'PUT', body: { baseRevision, set } });
  const code = (status: number, wanted: string) => ({ status, body: { error: { code: wanted } } });
  t.match(await put({ 'Review.MaxFindings': 4 }, 'x'), code(409, 'configurationRevisionMismatch'));
  t.match(await put({ 'Review.MaxFindings': 'x' }), code(400, 'configurationValidationFailed'));
  t.match(await put({}), code(400, 'invalidRequest'));
  t.match(await put({ 'Review.MaxFindings': 4 }), { status: 200, body: { changed: ['Review.MaxFindings'] } });
  t.equal(settings.current.Review.MaxFindings, 4);
  writeFileSync(settings.place.file, JSON.stringify({ Oratorio: { Settings: { Writable: false } } }));
  settings.reload();
  t.match(await put({ 'Review.MaxFindings': 5 }), code(403, 'configWritesForbidden'));
});

t.test(
  'regression: H3 settings that run programs or open listeners are not written with the service token',
  async (t) => {
    const { ask, settings } = await scene(t);
    const before = readFileSync(settings.place.file, 'utf8');
    const put = (set: object) =>
      ask('/api/v1/settings/server-configuration', {
        method: 'PUT',
        body: { baseRevision: settings.loaded.revision, set },
      });
    const routes = [{ Project: 'octo/hello', WorkspacePath: '/tmp/of-the-attacker' }];
    for (const [path, value] of [
      ['AgentServer.RepositoryWorkspaceRoutes', routes],
      ['agentserver.repositoryworkspaceroutes', routes],
      ['DotCraft.RepositoryWorkspaceRoutes', routes],
      ['AgentServer.RepositoryWorkspaceRoutes', null],
      ['AgentServer.Agent', 'codex'],
      ['AgentServer.WorktreeRoot', '/tmp/of-the-attacker'],
      ['AgentServer.HubDiscoveryEnabled', true],
      ['AgentServer.ManagedWorktreesEnabled', false],
      ['AgentServer.AppServerUrl', 'ws://thief.example/ws'],
      ['Server.Host', '0.0.0.0'],
      ['Server.Port', 80],
      ['Server.AllowedHosts', ['thief.example']],
      ['Server.Role', 'worker'],
      ['Settings.Writable', false],
      ['GitHub.Endpoint', 'https://thief.example'],
      ['GitHub.PrivateKeyPath', '/etc/shadow'],
    ] as const) {
      const answer = await put({ 'Review.MaxFindings': 4, [path]: value });
      t.match(answer, { status: 403, body: { error: { code: 'configurationOfDeployment' } } }, path);
      t.match(answer.body.error, { message: /oratorio\.config\.json/, details: { issues: [{ path }] } });
    }
    for (const section of ['AgentServer', 'Server', 'Settings'])
      t.match(await put({ [section]: {} }), {
        status: 400,
        body: { error: { code: 'configurationValidationFailed' } },
      });
    t.equal(readFileSync(settings.place.file, 'utf8'), before, 'nothing was written');
    // Control: a harmless setting is accepted.
    t.match(await put({ 'Review.MaxFindings': 4 }), { status: 200, body: { changed: ['Review.MaxFindings'] } });
  },
);

/** Reads a stream until `count` events are there. */
async function eventsOf(port: number, count: number, lastEventId?: string): Promise<{ ids: number[]; text: string }> {
  const controller = new AbortController();
  const headers = {
    authorization: `Bearer ${token}`,
    ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
  };
  const response = await fetch(`http://127.0.0.1:${port}/api/v1/events`, { headers, signal: controller.signal });
  let text = '';
  const idsOf = () => [...text.matchAll(/^id: (\d+)$/gm)].map(([, id]) => Number(id));
  const decoder = new TextDecoder();
  for await (const chunk of response.body ?? []) {
    text += decoder.decode(chunk, { stream: true });
    if (idsOf().length >= count && text.endsWith('\n\n')) break;
  }
  controller.abort();
  return { ids: idsOf(), text };
}

t.test('the event stream sends each event once and in order, after the last event of a reader', async (t) => {
  const { store, port, ask } = await scene(t);
  for (let n = 0; n < 30; n += 1) await store.publish('item.changed', { n });
  const newest = await store.newestEvent();
  const upTo = (from: number) => Array.from({ length: newest - from }, (_, index) => from + 1 + index);
  t.same((await eventsOf(port, newest, '0')).ids, upTo(0));
  t.same((await eventsOf(port, 10, String(newest - 10))).ids, upTo(newest - 10));
  const live = eventsOf(port, 5, String(newest));
  for (let n = 0; n < 5; n += 1) await store.publish('run.changed', { n });
  const { ids, text } = await live;
  t.same(
    ids,
    [1, 2, 3, 4, 5].map((step) => newest + step),
  );
  t.match(text, /event: run\.changed\ndata: \{"seq":/);
  t.match((await eventsOf(port, 1, '999999')).text, /event: stream\.gap/);
  await store.prune({ deliveries: 0, events: Date.now() + 60_000, runs: 0 });
  t.match((await eventsOf(port, 1, '2')).text, /event: stream\.gap/, 'what is kept no more');
  t.match(await ask('/api/v1/events?lastEventId=x'), { status: 400, body: { error: { code: 'invalidRequest' } } });
});

/** The other server of a failover has given the numbers of three lost events to `count` others. */
for (const [title, count] of [
  ['fewer events than the lost ones', 1],
  ['more events than the lost ones', 5],
] as const)
  t.test(`an open stream reports a gap after a failover to a server with ${title}`, async (t) => {
    const { port, store } = await scene(t);
    const answer = await fetch(`http://127.0.0.1:${port}/api/v1/events`, {
      headers: { authorization: `Bearer ${token}`, accept: 'text/event-stream' },
    });
    const reader = answer.body?.pipeThrough(new TextDecoderStream()).getReader();
    if (!reader) throw new Error('The stream has a body');
    t.teardown(() => reader.cancel());
    let text = '';
    const until = async (pattern: RegExp) => {
      while (!pattern.test(text)) text += (await reader.read()).value ?? '';
    };
    for (let n = 1; n <= 5; n += 1) await store.publish('run.changed', { n });
    await until(/"n":5/);
    t.notMatch(text, /stream\.gap/);
    const newest = await store.newestEvent();
    const others = Array.from({ length: count }, (_, n) => newest - 2 + n).map((seq) => ({
      ...{ seq, kind: 'run.changed', at: new Date(0).toISOString(), data: { other: seq } },
    }));
    const { publish } = store;
    Object.assign(store, {
      newestEvent: async () => others.at(-1)?.seq ?? 0,
      events: async (after: number, limit: number) => others.filter(({ seq }) => seq > after).slice(0, limit),
    });
    const last = newest - 3 + count;
    await publish('run.changed', {});
    await until(new RegExp(`event: stream\\.gap\ndata: {"after":${newest},"next":${last}}`));
    others.push({ seq: last + 1, kind: 'run.changed', at: new Date(0).toISOString(), data: { other: last + 1 } });
    await publish('run.changed', {});
    await until(new RegExp(`"other":${last + 1}}`));
    t.same(
      [...text.matchAll(/"other":(\d+)/g)].map(([, seq]) => Number(seq)),
      [last + 1],
      'each once, after the gap',
    );
  });

t.test('health reports whether the database responds, with one query for concurrent requests', async (t) => {
  const { ask, store } = await scene(t);
  t.match(await ask('/health'), { status: 200, body: { service: 'oratorio', status: 'ok' } });
  await new Promise((resolve) => setTimeout(resolve, 600));
  let asked = 0;
  const { now } = store;
  Object.assign(store, {
    now: async () => {
      asked += 1;
      throw new Error('the database is gone');
    },
  });
  const answers = await Promise.all(Array.from({ length: 20 }, () => ask('/health')));
  for (const each of answers) t.match(each, { status: 503, body: { service: 'oratorio', status: 'unavailable' } });
  t.ok(asked < 20, `${asked} questions`);
  Object.assign(store, { now });
});

t.test('health fails while the database answers but accepts no writes; liveness does not', async (t) => {
  const { ask, store } = await scene(t);
  const { setFact } = store;
  Object.assign(store, {
    setFact: async () => {
      throw new ReviewStoreError('databaseFull', 'No space left on device');
    },
  });
  t.match(await ask('/health'), { status: 503, body: { status: 'unavailable', reason: /No space left/ } });
  t.match(await ask('/health/live'), { status: 200, body: { service: 'oratorio', status: 'ok' } });
  Object.assign(store, { setFact });
  const isReady = async () => (await ask('/health')).status === 200;
  while (!(await isReady())) await new Promise((resolve) => setTimeout(resolve, 50));
  t.match(await store.fact('health'), /^\d{4}-/);
});

t.test('health fails with the reason while the database stalls; liveness does not', async (t) => {
  const { ask, store } = await scene(t);
  const { now } = store;
  const answered = Promise.withResolvers<void>();
  Object.assign(store, {
    now: async () => {
      await answered.promise;
      return now();
    },
  });
  const answers = await Promise.all([ask('/health'), ask('/health'), ask('/health/live')]);
  const stalled = { status: 503, body: { status: 'unavailable', reason: 'The database does not answer.' } };
  t.match(answers, [stalled, stalled, { status: 200 }]);
  answered.resolve();
  while ((await ask('/health')).status !== 200) await new Promise((resolve) => setTimeout(resolve, 50));
});

t.test('dead jobs are listed without their payload', async (t) => {
  const { ask, store } = await scene(t);
  await store.enqueueJob({ kind: 'write', key: 'k', payload: { writeId: 'of nobody' } });
  const [job] = await store.claimJobs('one', ['write'], 1, 60_000);
  if (!job) throw new Error('There is no job');
  await store.failJob(job, 'forbidden: GitHub answered 403', 'dead');
  const { status, body } = await ask('/api/v1/dead-jobs');
  t.equal(status, 200);
  t.match(body, [{ kind: 'write', key: 'k', attempt: 1, error: /^forbidden/, diedAt: String }]);
  t.notOk('payload' in body[0]);
  t.match(await ask('/api/v1/status'), { body: { deadJobs: 1 } });
});

for (const adapter of ['uws', 'node'] satisfies Adapter[]) {
  t.test(`requests without the token, with a foreign host or origin are rejected (${adapter})`, async (t) => {
    const { port, store } = await scene(t, adapter);
    const wrong: string[] = [];
    const bearing = { authorization: `Bearer ${token}` };
    const own = { Host: `127.0.0.1:${port}` };
    const attempts: readonly Record<string, string>[] = [
      {},
      { authorization: 'Bearer ' },
      { authorization: `Bearer ${token}x` },
      { authorization: `Basic ${Buffer.from(`x:${token}`).toString('base64')}` },
      { cookie: `token=${token}` },
    ];
    for (const [operation, route] of routes) {
      const path = pathOf(route);
      const send = (method: string, headers: Record<string, string>, at = path) =>
        exchange(port, rawRequest(method, at, { ...own, ...headers }));
      if (route.auth === 'token') {
        for (const headers of attempts) {
          const { status, head, body } = await send(route.method, headers);
          if (status !== 401) wrong.push(`${operation} ${JSON.stringify(headers)} → ${status}`);
          if (/access-control-|set-cookie/i.test(head) || body.includes(token)) wrong.push(`${operation}: ${head}`);
          if (!/x-content-type-options/i.test(head) || !/cache-control: no-store/i.test(head))
            wrong.push(`${operation}: ${head}`);
        }
        const { status } = await send(route.method, {}, `${path}?token=${token}`);
        if (status !== 401) wrong.push(`${operation}?token → ${status}`);
      }
      for (const Host of ['evil.example', 'localhost.evil.example', '192.168.1.10', ''])
        if (![400, 403].includes((await send(route.method, { ...bearing, Host })).status))
          wrong.push(`${operation} for ${Host}`);
      if (route.method !== 'GET') {
        for (const headers of [
          { origin: 'https://evil.example' },
          { origin: 'null' },
          { 'sec-fetch-site': 'cross-site' },
        ]) {
          const { status } = await send(route.method, { ...bearing, ...headers });
          if (status !== 403) wrong.push(`${operation} ${JSON.stringify(headers)} → ${status}`);
        }
      }
      for (const method of ['TRACE', 'OPTIONS', 'PROPFIND', 'DELETE']) {
        const { status } = await send(method, bearing);
        if (status < 400) wrong.push(`${method} ${path} → ${status}`);
      }
      for (const at of [
        `/${path}`,
        `${path}/`,
        `/x/..${path}`,
        `${path}%2f`,
        path.toUpperCase(),
        `${path};x`,
        `${path}%00`,
      ]) {
        const { status } = await send(route.method, {}, at);
        if (status < 400) wrong.push(`${route.method} ${at} → ${status}`);
      }
    }
    t.same(wrong.slice(0, 20), []);
    t.match(await store.item((await store.items({ limit: 1 })).rows[0]?.itemId ?? ''), { isPaused: false });
  });

  t.test(
    `the webhook over a socket: no token, a signature; too large is 413, other methods 405 (${adapter})`,
    async (t) => {
      const { port } = await scene(t, adapter);
      const at = `http://127.0.0.1:${port}/api/v1/sources/github/webhook`;
      const body = JSON.stringify({ zen: '…' });
      const headers = headersOf({ event: 'push', body }) as Record<string, string>;
      const send = async (init: RequestInit) => {
        const response = await fetch(at, { method: 'POST', body, ...init });
        return { status: response.status, body: JSON.parse(await response.text()) };
      };
      t.match(await send({ headers }), { status: 202, body: { status: 'ignored' } });
      t.match(await send({ headers }), { status: 200, body: { status: 'duplicate' } });
      t.match(await send({}), { status: 403, body: { error: { code: 'invalidSignature' } } });
      const huge = rawRequest('POST', '/api/v1/sources/github/webhook', {
        Host: '127.0.0.1',
        'content-length': '26214401',
      });
      t.equal((await exchange(port, huge)).status, 413);
      t.equal((await fetch(at)).status, 405);
    },
  );
}
