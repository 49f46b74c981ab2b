/** Dashboard of a real agent server: traces of real turns in its stream, its API and its page. */
import type { Test } from 'tap';
import { traceTypes } from '../../src/protocol/index.ts';
import { axe } from '../ui/scene.ts';
import { approver, runTurn } from './agent-server.ts';
import { begin, conversations } from './bookshop.ts';
import { type DashboardScene, eventsOf, followTraces, sessionRow, theatre } from './dashboard-scene.ts';
import { openAt } from './sweep.ts';

const { scene, end } = theatre();

/** All types but those of a turn whose agent server ends. */
const shownTypes = traceTypes.filter((type) => type !== 'turn.resumed' && type !== 'turn.suspended').sort();

scene(
  'every type of trace is in the stream, the API and the page',
  { Compaction: { KeepRecentTurns: 1 }, FallbackModels: ['spare'] },
  async (t, stage) => {
    const { connect, workspacePath, open } = stage;
    const stream = await followTraces(t, stage);
    const page = await open('/sessions');
    await page.getByText('No trace yet').waitFor();
    const client = await connect(approver('accept'));
    const key = await begin(client, workspacePath, 'Everything');
    await sessionRow(page, 'Everything').waitFor();
    t.pass('the table is live');
    for (const each of ['voucher', 'missing', 'refused'] as const) {
      await runTurn(client, key, conversations[each].ask);
    }
    await client.request('thread/compact', { threadId: key });
    await client.request('thread/archive', { threadId: key });

    const seen = await stream.until((events) => events.some(({ type }) => type === 'session.completed'));
    const types = (events: readonly { readonly type: string }[]) => [...new Set(events.map(({ type }) => type))].sort();
    t.same(types(seen), shownTypes, 'in the stream');
    const { events, session } = await eventsOf(stage, key);
    t.same(types(events), shownTypes, 'in the API');
    t.same(
      events.map(({ id }) => id),
      seen.map(({ id }) => id),
      'the same events in the same order',
    );
    t.match(session, { thinkingCount: 3, responseCount: 3, turnCount: 3, failedTurnCount: 1, compactionCount: 2 });
    t.match(session, { toolCallCount: 6, toolFailureCount: 2, errorCount: 1, displayName: 'Everything' });

    await page.close();
    const tab = await open(`/sessions/${key}?view=list&q=type:error`);
    await tab.getByRole('heading', { name: 'Everything' }).waitFor();
    const shown = tab.locator('main .list-view .value');
    const typed = (type: string) => shown.filter({ hasText: new RegExp(`^${type}$`) }).first();
    await typed('error').waitFor();
    t.equal(await typed('thinking').count(), 0, 'the address filters the list');
    // Only rows in sight are in the page.
    await tab.setViewportSize({ width: 1280, height: 4_000 });
    await openAt(tab, '/sessions');
    await openAt(tab, `/sessions/${key}?view=list`);
    for (const type of shownTypes) await typed(type).waitFor();
    t.pass('in the page');
  },
);

scene('a workspace in use', {}, async (t, stage) => {
  await t.test('a confirmed deletion of traces can be undone, and spares a session with an active turn', (t) =>
    deletesTraces(t, stage),
  );
  await t.test('each view opens by its address and by keys, without findings of axe-core', (t) =>
    showsEachView(t, stage),
  );
});

async function showsEachView(t: Test, stage: DashboardScene): Promise<void> {
  const { connect, workspacePath, context } = stage;
  const client = await connect(approver('accept'));
  const key = await begin(client, workspacePath, 'The missing cent');
  await runTurn(client, key, conversations.voucher.ask);
  await client.request('cron/add', {
    name: 'digest',
    prompt: conversations.digest.ask,
    schedule: { kind: 'daily', time: '07:30', timeZone: 'Europe/Berlin' },
  });
  // A trace reads its address when it is opened: each from another view.
  const views: readonly (readonly [at: string, shows: string])[] = [
    ['/overview', 'The missing cent'],
    [`/sessions/${key}`, 'Why is an order with a voucher'],
    ['/sessions', 'The missing cent'],
    [`/sessions/${key}?view=log`, 'cent'],
    ['/actors', 'Why is an order with a voucher'],
    [`/sessions/${key}?view=list`, 'tool.failed'],
    ['/automations', 'digest'],
    ['/settings', 'Max tool call rounds'],
    ['/events', 'The turn ended'],
    ['/logs', 'Logs'],
  ];
  const [page] = context.pages();
  if (!page) throw new Error('the page of the test before is open');
  for (const [at, shows] of views) {
    await openAt(page, at);
    await page.locator('main').getByText(shows).first().waitFor();
    t.match(page.url(), at.split('?')[0] ?? '', 'the address stays');
    t.notMatch(page.url(), 'token=', 'without the token');
    t.same(await axe(page), [], at);
  }
  await openAt(page, '/overview');
  await page.locator('main').getByText('The missing cent').first().waitFor();
  // The second key of a sequence must come soon: it does not wait for the answer to the first.
  const press = (...keys: readonly string[]) => Promise.all(keys.map((key) => page.keyboard.press(key)));
  await press('g', 's');
  await page.getByRole('grid', { name: 'Traces' }).waitFor();
  await sessionRow(page, 'The missing cent').waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'The missing cent' }).waitFor();
  await press('g', 't');
  await page.getByRole('link', { name: 'digest' }).waitFor();
  await page.keyboard.press('Control+k');
  await page.keyboard.type('missing');
  await page.getByRole('option', { name: 'The missing cent' }).waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'The missing cent' }).waitFor();
  t.pass('the keyboard is enough');
}

async function deletesTraces(t: Test, stage: DashboardScene): Promise<void> {
  const { connect, workspacePath, open, ask } = stage;
  let answer: (decision: unknown) => void = () => undefined;
  const answered = new Promise((resolve) => {
    answer = resolve;
  });
  const client = await connect({ onRequest: () => answered });
  const done = await begin(client, workspacePath, 'Stock list');
  await runTurn(client, done, conversations.thought.ask);
  const running = await begin(client, workspacePath, 'Publish');
  const over = runTurn(client, running, conversations.publish.ask);
  const page = await open('/sessions');
  await sessionRow(page, 'Publish').getByText('Running').waitFor();
  t.equal((await ask(`/api/sessions/${running}`, { method: 'DELETE' })).status, 409);

  await sessionRow(page, 'Stock list').locator('.c-state').click();
  await page.locator('.peek').getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('button', { name: 'Delete trace' }).click();
  await sessionRow(page, 'Stock list').waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Undo' }).click();
  await sessionRow(page, 'Stock list').waitFor();
  t.ok((await eventsOf(stage, done)).events.length > 0, 'nothing was deleted');

  await page.getByRole('button', { name: 'Delete all…' }).click();
  await page.getByRole('textbox', { name: 'Type 2' }).fill('2');
  await page.getByRole('button', { name: 'Delete all traces' }).click();
  await page.getByText('1 trace kept, because a turn runs').waitFor();
  await sessionRow(page, 'Stock list').waitFor({ state: 'detached' });
  t.equal((await ask(`/DashBoard/api/sessions/${done}/events`)).status, 404, 'all its events are deleted');
  answer({ decision: 'decline' });
  await over;
  await sessionRow(page, 'Publish').getByText('Completed').waitFor();
  t.pass('the session with the active turn is present and updated');
  client.close();
}

end();
