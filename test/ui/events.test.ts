/** The events view: everything as it comes, filtered, held, copied and saved; and its parts by themselves. */

import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import fc from 'fast-check';
import type { Page } from 'playwright-core';
import t from 'tap';
import { type EventSummary, hubEventKinds, traceTypes } from '../../src/protocol/index.ts';
import { matches, parseFilter } from '../../src/ui/views/events/filter.ts';
import { Firehose } from '../../src/ui/views/events/firehose.ts';
import { sentenceOf } from '../../src/ui/views/events/sentences.ts';
import { axe, stage } from './scene.ts';
import { shows } from './shows.ts';
import { untilToast } from './toast.ts';

const scene = await stage();

const rows = (page: Page) => page.locator('.events [role=option]');
/** Connected, and the view listens. */
const live = async (page: Page) => {
  await page.getByRole('heading', { name: 'Events', exact: true }).waitFor();
  await page.locator('.connection.live').waitFor();
};
const summary = (page: Page, text: string) => page.locator('.events .count', { hasText: text }).waitFor();
const event = (
  id: number,
  type: EventSummary['type'] = 'tool.completed',
  more: Partial<EventSummary> = {},
): EventSummary => ({
  id,
  sessionKey: 'thread_1',
  type,
  at: '2026-11-21T12:00:00.000Z',
  tool: 'Exec',
  data: { result: `done ${id}` },
  ...more,
});
const frame = (id: number, event = 'tool.completed', data: unknown = { id }) => ({
  id: `b-${id}`,
  event,
  data: JSON.stringify(data),
});

t.test('a filter parses types, fields, words, quoted words and exclusions', async (t) => {
  t.same(parseFilter('type:tool. tool:Exec "No such file" -Retry done'), {
    types: ['tool.'],
    fields: [['tool', 'exec']],
    texts: ['no such file', 'done'],
    without: ['retry'],
  });
  const record = { type: 'tool.failed', data: '{"text":"No such file"}', fields: { tool: 'Exec', data: { code: 2 } } };
  for (const text of ['', 'type:tool', 'tool:exec', 'code:2', '"no such"', 'such -other', 'type:turn type:tool']) {
    t.equal(matches(parseFilter(text), record), true, text);
  }
  for (const text of ['type:turn', 'tool:Read', 'code:3', 'other', '-such', 'nofield:1']) {
    t.equal(matches(parseFilter(text), record), false, text);
  }
});

t.test('any text parses as a filter', async () => {
  fc.assert(
    fc.property(
      fc.string(),
      fc.string(),
      (text, data) => typeof matches(parseFilter(text), { type: 't', data, fields: {} }) === 'boolean',
    ),
  );
});

t.test('the firehose keeps the newest events up to its bound, and counts the evicted ones', async () => {
  fc.assert(
    fc.property(
      fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 30 }),
      fc.integer({ min: 10, max: 60 }),
      (batches, bound) => {
        const firehose = new Firehose(bound);
        let sent = 0;
        for (const size of batches) firehose.push(Array.from({ length: size }, () => frame(++sent)));
        const ids = firehose.shown.map(({ seq }) => seq);
        const isGapless = ids.every((id, index) => id === sent - ids.length + 1 + index);
        return isGapless && firehose.size + firehose.evicted === sent && firehose.size <= bound * 1.1 + 1;
      },
    ),
  );
});

t.test('a pause fixes the shown events, also under a new filter, and loses none', async (t) => {
  const firehose = new Firehose(100);
  firehose.push([frame(1), frame(2, 'turn.started')]);
  firehose.pause();
  firehose.push([frame(3), frame(4)]);
  t.equal(firehose.shown.length, 2);
  t.equal(firehose.unseen, 2);
  firehose.find(parseFilter('type:turn'));
  t.same(
    firehose.shown.map(({ type }) => type),
    ['turn.started'],
  );
  firehose.find(parseFilter(''));
  t.equal(firehose.shown.length, 2);
  firehose.resume();
  t.equal(firehose.shown.length, 4);
});

t.test('earlier events are inserted first, without duplicates', async (t) => {
  const firehose = new Firehose(100);
  firehose.push([frame(3, 'response', { id: 3 })]);
  firehose.begin([frame(2, 'thinking', { id: 2 }), frame(3, 'response', { id: 3 })]);
  t.same(
    firehose.shown.map(({ type }) => type),
    ['thinking', 'response'],
  );
  t.ok((firehose.shown[0]?.seq ?? 1) < (firehose.shown[1]?.seq ?? 0));
});

t.test(
  'regression: earlier and streamed events are each shown once and in order, whichever arrives first',
  async () => {
    const trace = (id: number) => frame(id, 'tool.completed', { id });
    const range = (from: number, to: number) =>
      Array.from({ length: Math.max(0, to - from + 1) }, (_, at) => trace(from + at));
    fc.assert(
      fc.property(fc.nat(30), fc.nat(40), fc.nat(40), (joinedAt, streamed, newer) => {
        const firehose = new Firehose(1000);
        const newest = joinedAt + newer;
        firehose.push(range(joinedAt + 1, joinedAt + streamed));
        firehose.begin(range(Math.max(1, newest - 19), newest));
        firehose.push(range(joinedAt + streamed + 1, joinedAt + 80));
        const ids = firehose.shown.map(({ fields }) => Number(fields['id']));
        const isGapless = ids.every((id, at) => at === 0 || id === Number(ids[at - 1]) + 1);
        return isGapless && ids.at(-1) === joinedAt + 80 && (ids[0] ?? 0) <= joinedAt + 1;
      }),
    );
  },
);

/** Sentence of an event with these data. */
const sentence = (type: string, data: Readonly<Record<string, unknown>>, fields = {}): string =>
  sentenceOf({ seq: 1, id: '', type, at: 0, data: JSON.stringify(data), fields: { ...fields, data }, isGap: false });

t.test('regression: every kind of event is a sentence with its facts, and none is JSON', async (t) => {
  for (const [type, data, expected] of [
    ['appserver.running', { pid: 7, recovered: true }, 'The agent server answers again (process 7).'],
    ['appserver.exited', { signal: 'SIGKILL', error: null }, 'The agent server ended (SIGKILL).'],
    ['appserver.exited', { stopped: true, reason: 'idle' }, 'The agent server was stopped (idle).'],
    ['appserver.health', { health: 'degraded', code: 'mcpServerDown' }, 'Something does not work: mcpServerDown'],
    ['appserver.health', { health: 'healthy', pendingApprovals: 1 }, 'Turns and tools work. 1 request waits for you.'],
    ['inbox.resolved', { decision: 'accept', decidedBy: 'terminal' }, 'A request has ended: Allowed in the terminal'],
    [
      'inbox.resolved',
      { decision: 'accept', decidedBy: 'page', requestId: 'question_1' },
      'A request has ended: Answered on a page',
    ],
    [
      'inbox.resolved',
      { decision: 'decline', decidedBy: 'timeout' },
      'A request has ended: Declined: no answer in time',
    ],
    ['notification.requested', { title: 'Done', body: 'It took long.' }, 'Done: It took long.'],
    ['turn.completed', { status: 'failed' }, 'The turn ended: failed'],
    ['later.kind', { some: 'fact', deep: { no: 1 } }, 'Later kind: Some fact'],
  ] as const)
    t.equal(sentence(type, data), expected);
  const started = sentence('tool.started', { arguments: '{"path":"src/a.ts"}' }, { tool: 'EditFile' });
  t.equal(started, 'Edit src/a.ts', 'a call has the words of its conversation');
  for (const type of [...Object.keys(hubEventKinds), ...traceTypes].filter((type) => type !== 'hub.gap')) {
    const first = sentence(type, { tool: 'Exec', title: 'A title' }, { tool: 'Exec' });
    t.match(first, /^(?:[A-Z]|$)/, type);
    t.notMatch(first, /[{}]/, type);
    // A type without a row has its own name as its sentence.
    t.not(first.toLowerCase().replace(/[^a-z]/g, ''), type.toLowerCase().replace(/[^a-z]/g, ''), type);
  }
});

scene(
  'live events can be filtered, opened, copied and linked',
  {
    at: '/events',
    context: { permissions: ['clipboard-read', 'clipboard-write'] },
  },
  async (t, { page, backend }) => {
    await live(page);
    await shows(
      t,
      'match',
      () => page.locator('main').textContent(),
      'oratorio exec',
      'empty: the command that fills it',
    );
    t.same(await axe(page), []);
    const data = { result: `${'x'.repeat(1_999)}👩‍👩‍👧‍👦` };
    for (let id = 1; id <= 50; id += 1)
      backend.trace(event(id, id % 10 === 0 ? 'tool.failed' : 'tool.completed', { data }));
    await summary(page, '50 of 50');
    t.same(await axe(page), []);
    await page.keyboard.press('/');
    await page.keyboard.type('type:tool.failed');
    await summary(page, '5 of 50');
    t.match(decodeURIComponent(page.url()), 'q=type:tool.failed', 'the filter is in the address');
    await page.keyboard.press('Escape');
    await page.keyboard.press('Escape');
    await summary(page, '50 of 50');

    await page.keyboard.press('j');
    const drawer = page.getByRole('complementary', { name: 'Selected event' });
    await drawer.waitFor();
    await drawer.getByRole('button', { name: '11 more characters' }).waitFor();
    await shows(
      t,
      'match',
      () => drawer.locator('.string', { hasText: '11 more' }).textContent(),
      /"x{1999}11 more/,
      'no half emoji',
    );
    t.same(await axe(page), []);
    const eventCopied = untilToast(page, 'Event copied.');
    await page.keyboard.press('c');
    await eventCopied;
    const copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
    t.match(copied, { sessionKey: 'thread_1', tool: 'Exec' });
    const commandCopied = untilToast(page, 'Command copied.');
    await drawer.getByRole('button', { name: 'Copy as curl' }).click();
    await commandCopied;
    await shows(
      t,
      'match',
      () => page.evaluate(() => navigator.clipboard.readText()),
      /^curl -H "authorization: Bearer \$ORATORIO_TOKEN" 'http:.*\/sessions\/thread_1\/events\/\d+'$/,
    );
    await shows(
      t,
      'equal',
      () => drawer.getByRole('link').getAttribute('href'),
      `#/sessions/thread_1?event=${copied.id}`,
    );
    await page.keyboard.press('Escape');
    await drawer.waitFor({ state: 'detached' });
  },
);

scene(
  'a pause fixes the shown events and drops none; shown events can be saved',
  { at: '/events' },
  async (t, { page, backend }) => {
    await live(page);
    backend.trace(event(1));
    await summary(page, '1 of 1');
    await page.keyboard.press('p');
    await page.getByRole('button', { name: 'Paused' }).waitFor();
    for (let id = 2; id <= 20; id += 1) backend.trace(event(id));
    await page.getByText('19 waiting').waitFor();
    await shows(t, 'equal', () => rows(page).count(), 1);
    await page.keyboard.press('p');
    await summary(page, '20 of 20');
    const [file] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('x')]);
    t.match(file.suggestedFilename(), /^events-\d{8}-\d{6}\.jsonl$/);
    const lines = (await readFile(await file.path(), 'utf8')).trimEnd().split('\n');
    t.same(
      lines.map((line) => JSON.parse(line).id),
      Array.from({ length: 20 }, (_, index) => index + 1),
    );
  },
);

scene(
  'the list follows new events at its end, and counts them elsewhere',
  { at: '/events' },
  async (t, { page, backend }) => {
    await live(page);
    for (let id = 1; id <= 200; id += 1) backend.trace(event(id));
    await summary(page, '200 of 200');
    await rows(page).getByText('done 200').waitFor();
    await page.locator('.events .vlist').evaluate((list) => list.scrollTo({ top: 0 }));
    await rows(page)
      .getByText(/done 1$/)
      .waitFor();
    backend.trace(event(201));
    backend.trace(event(202));
    await page.getByRole('button', { name: '2 new' }).click();
    await rows(page).getByText('done 202').waitFor();
    await page.getByRole('button', { name: '2 new' }).waitFor({ state: 'detached' });
    t.ok((await rows(page).count()) < 100, 'only visible rows are in the document');
  },
);

scene(
  'events beyond the bound are evicted and counted; a screen reader gets summaries',
  { at: '/events' },
  async (t, { page, backend }) => {
    await live(page);
    for (let id = 1; id <= 12_500; id += 1) backend.events.send('tool.completed', event(id));
    // The number depends on the pieces of the stream: at least a thousand events are evicted at once.
    await page.getByText(/(1,\d{3}|2,[0-4]\d\d|2,500) earlier events were let go/).waitFor();
    await page.locator('.events > [role=status]', { hasText: /new events/ }).waitFor({ state: 'attached' });
    t.ok((await rows(page).count()) < 100);
  },
);

scene('the page of a Hub shows the events of the Hub', { kind: 'hub', at: '/events' }, async (t, { page, backend }) => {
  await live(page);
  await shows(t, 'match', () => page.locator('main').textContent(), 'oratorio up --init <dir>');
  backend.events.send('appserver.running', {
    kind: 'appserver.running',
    at: '2026-11-21T12:00:00Z',
    workspacePath: '/w/fugue',
    data: { pid: 7, endpoints: { appServerWebSocket: 'ws://127.0.0.1:1/ws?token=s3cret-of-it' } },
  });
  await shows(t, 'match', () => rows(page).first().textContent(), /The agent server is ready \(process 7\)\..*fugue/);
  await rows(page).first().click();
  await page.getByText('endpoints').first().waitFor();
  t.notMatch(await page.content(), 's3cret-of-it', 'regression: an event shows no token');
  const [download] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('button', { name: 'JSON lines' }).click(),
  ]);
  const saved = readFileSync(await download.path(), 'utf8');
  t.match(saved, 'appserver.running');
  t.notMatch(saved, 's3cret-of-it');
});

scene(
  'regression: the events of a workspace begin with the last ones, and older ones are fetched on request',
  {
    at: '/events',
    prepare: (backend) => {
      backend.state.eventsPerPage = 20;
      backend.state.recentEvents = Array.from({ length: 45 }, (_, index) => event(45 - index));
    },
  },
  async (_t, { page }) => {
    await live(page);
    await summary(page, '20 of 20');
    await page.getByRole('button', { name: 'Older events' }).click();
    await summary(page, '40 of 40');
    await page.getByRole('button', { name: 'Older events' }).click();
    await summary(page, '45 of 45');
    await page.getByRole('button', { name: 'Older events' }).waitFor({ state: 'detached' });
    await page.locator('.events .vlist').evaluate((list) => list.scrollTo({ top: 0 }));
    await rows(page)
      .getByText(/done 1$/)
      .waitFor();
  },
);

scene(
  'regression: the events of a Hub begin with its ring, without a token; a failed turn is not a success',
  {
    kind: 'hub',
    at: '/events',
    prepare: (backend) => {
      const url = 'ws://127.0.0.1:1/ws?token=secret-of-it';
      const data = { pid: 5, endpoints: { appServerWebSocket: url } };
      const at = '2026-11-21T12:00:00.000Z';
      backend.state.hubEvents = [
        { id: 'b-1', kind: 'appserver.running', at, workspacePath: '/w/shop', data },
        { id: 'b-2', kind: 'appserver.health', at, workspacePath: '/w/shop', data: { health: 'failing' } },
        {
          ...{ id: 'b-3', kind: 'notification.requested', at, workspacePath: '/w/shop' },
          data: { kind: 'turnCompleted', title: 'A turn of shop is done', body: null, severity: 'success' },
        },
      ];
    },
  },
  async (t, { page }) => {
    await live(page);
    await summary(page, '3 of 3');
    await shows(t, 'match', () => page.locator('.events').textContent(), /The agent server is ready \(process 5\)\./);
    t.notMatch(await page.content(), 'secret-of-it');
    await rows(page).locator('.said.danger').getByText('Turns fail.').waitFor();
    t.equal(await page.locator('.said.warn').count(), 0, 'a completed turn is no warning');
    await page.setViewportSize({ width: 390, height: 844 });
    const isShown = async () => {
      const box = await rows(page).getByText('A turn of shop is done').boundingBox();
      return box && box.width > 130 && box.x + box.width <= 390;
    };
    await shows(t, 'ok', isShown, 'a phone shows the sentence');
    await page.setViewportSize({ width: 1280, height: 800 });
    const [file] = await Promise.all([page.waitForEvent('download'), page.keyboard.press('x')]);
    t.notMatch(await readFile(await file.path(), 'utf8'), 'secret-of-it', 'nor do saved lines');
  },
);
